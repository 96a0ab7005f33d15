"""Shared by the tests of sessions with the plugin, whose first argument is its library: registers it, and
makes sessions of models.
"""

import pathlib
import sys
import tempfile
import unittest

import onnxruntime as ort
import plugin

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from small_models import relu  # noqa: E402

LIBRARY = pathlib.Path(sys.argv.pop(1)).resolve()


class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.devices = plugin.register(LIBRARY)

    @classmethod
    def tearDownClass(cls):
        ort.unregister_execution_provider_library("ane")

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def session(self, made, options=None, entries=(), **how):
        session_options = plugin.options_of(self.devices, options or {}, **how)
        for key, value in entries:
            session_options.add_session_config_entry(key, value)
        what = made if isinstance(made, str) else made.SerializeToString()
        return plugin.session_of(what, session_options)

    def refused(self, pattern, made=None, options=None, entries=()):
        with self.assertRaisesRegex(Exception, pattern):
            self.session(made or relu(), options, entries)
