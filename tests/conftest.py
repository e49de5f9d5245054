"""Registers the plugin that grades; nothing else belongs here."""

pytest_plugins = ["drills.pytest_plugin"]
