"""`python -m suiro.cli` is `suiro`."""

from suiro.cli import main

main()
