"""Run under any Python from 3.11 on: record the edge program, compare every probe, print the result as JSON.

python check_recorder.py settrace|monitoring
"""

import bisect
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.abspath(os.path.join(HERE, "..", "..", ".."))]

import edge_program  # noqa: E402
import outside  # noqa: E402

from explorer.collectors.lines.replay import Replay  # noqa: E402
from explorer.collectors.lines.user_code import UserCode  # noqa: E402


def main() -> None:
    code = UserCode(exclude=["*/outside.py", "*/check_recorder.py"])
    if sys.argv[1] == "monitoring":
        from explorer.collectors.lines.monitoring_recorder import MonitoringRecorder as Recorder
    else:
        from explorer.collectors.lines.settrace_recorder import SettraceRecorder as Recorder
    outside.SEEN.clear()
    recorder = Recorder(code)
    recorder.start(sys._getframe())
    edge_program.main()
    recorder.stop()
    replay = Replay()
    states = {}
    for thread in recorder.take():
        states[thread.native_id] = (thread.records[0::2], replay.nodes(thread))
    wrong = []
    for moment, native_id, chain in outside.SEEN:
        times, nodes = states.get(native_id, ([], []))
        at = bisect.bisect_right(times, moment) - 1
        found = [(c.co_qualname, line) for c, line, _ in replay.chains.chain(nodes[at])] if at >= 0 else []
        if found != chain:
            wrong.append({"expected": chain, "found": found})
    print(json.dumps({"probes": len(outside.SEEN), "wrong": wrong, "method": recorder.method}))


main()
