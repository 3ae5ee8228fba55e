"""What ``foveate run`` does with a stream: exit codes, messages, summary, interruption. No video needed."""

import os
import signal
import threading
from typing import Any

import pytest

from foveate.app.arguments import RunArguments
from foveate.app.console import Console
from foveate.app.exits import Exit
from foveate.app.run import run
from foveate.app.signals import Interruption, interruptible
from foveate.app.tally import Tally
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import Settings
from tests_app_conftest import FakeStream, selection
