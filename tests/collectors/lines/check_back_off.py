"""Run under any Python from 3.11 on: spend what recording may take, and print what it did then as JSON.

python check_back_off.py settrace|monitoring
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.abspath(os.path.join(HERE, "..", "..", ".."))]

from explorer.collectors.lines import budget  # noqa: E402
from explorer.collectors.lines.replay import Replay  # noqa: E402
from explorer.collectors.lines.user_code import UserCode  # noqa: E402

if sys.argv[1] == "monitoring":
    from explorer.collectors.lines import monitoring_recorder as module
    from explorer.collectors.lines.monitoring_recorder import MonitoringRecorder as Recorder
else:
    from explorer.collectors.lines import settrace_recorder as module
    from explorer.collectors.lines.settrace_recorder import SettraceRecorder as Recorder

NOW = [0]
budget.WAITING_SHARE = 0
budget.time.thread_time_ns = budget.time.process_time_ns = lambda: NOW[0]


def looping(times: int) -> int:
    total = 0
    for number in range(times):
        total += number
    return total


def after() -> int:
    return 1


def made(recorder: Recorder) -> int:
    """Records of this thread so far."""
    own = recorder._threads[0]
    return len(getattr(own, "own", own).records) // 2


def main() -> None:
    recorder = Recorder(UserCode(), line_budget=10**9)
    recorder.start(sys._getframe())
    # No time passes: the first credit is all there is, and it is spent by fewer records than these.
    looping(2 * budget.CREDIT_NS // module.RECORD_NS)
    spent = recorder.switched_off
    frame = sys._getframe()
    token = recorder.pin(frame)
    pinned, line = made(recorder), frame.f_lineno - 1
    recorder.unpin(frame, token)
    unpinned = made(recorder)
    NOW[0] += 1
    refused = not recorder.take_up(sys._getframe()) if sys.argv[1] == "monitoring" else True
    NOW[0] += 10**9
    taken_up = recorder.take_up(sys._getframe())
    after()
    recorder.stop()
    records = recorder.take()[0]
    chains = (replay := Replay()).nodes(records)
    states = [(replay.chains.chain(node) or [(None, None, True)])[0] for node in chains]
    functions = [replay.chains.codes[node].co_name for node in chains if node]
    print(
        json.dumps(
            {
                "switched_off": spent,
                "refused": refused,
                "taken_up": taken_up,
                "pinned": states[pinned - 1][1:] == (line, False),
                "known_afterwards": not states[unpinned - 1][2],
                "after": functions.count("after"),
                "looping": sum(name == "looping" for name in functions),
                "made": 4 * budget.CREDIT_NS // module.RECORD_NS,
            }
        )
    )


main()
