-- host_classes: the classes of host activity. At one instant the running class with the greatest weight counts; a class with
-- a blocking weight goes before all that have none.
-- Needs: events
-- Columns
--   category VARCHAR - Category of host events (docs/categories.md)
--   class VARCHAR - gc, compile, data, io, op, runtime, communication, sync or python
--   blocking BIGINT - Digit of the class to base 32768 in host_boundaries.blocking, or 0
--   working BIGINT - Digit of the class to base 4096 in host_boundaries.working, or 0
--   nests BOOLEAN - Inside another such event it takes that one's place
SELECT category, class, blocking, working, working > 1 AS nests
FROM (VALUES ('gc', 'gc', 35184372088832, 0), ('compile', 'compile', 1073741824, 0), ('data', 'data', 32768, 0), ('io', 'io', 1, 0),
             ('op', 'op', 0, 281474976710656), ('runtime', 'runtime', 0, 68719476736),
             ('collective', 'communication', 0, 16777216), ('sync', 'sync', 0, 4096), ('annotation', 'python', 0, 1),
             ('python', 'python', 0, 1), ('step', 'python', 0, 1)) AS classes (category, class, blocking, working)
