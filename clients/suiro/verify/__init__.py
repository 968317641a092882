"""Whether a cluster keeps its promises: workloads, and checkers of what their clients were told.

The checkers (`history`, `bank`, `groups`, `table`, `payload`) know nothing of the product and use
none of its code; a lint rule sees to it. The workloads use the SDK as any application does, and run
against live clusters (`suiro verify`), in the simulator and in the chaos suite alike.
"""
