"""Measurements inside other programs."""
