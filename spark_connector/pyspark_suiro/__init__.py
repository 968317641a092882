"""The Spark data source `suiro`."""
