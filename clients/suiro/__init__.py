"""Suiro: a distributed commit log with a columnar, Arrow-native heart."""
