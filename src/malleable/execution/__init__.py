"""Where tasks run: in this process, in worker processes of this machine, or on an executor such as Ray's.

`tasks.spread` carries out tasks that hand in what they have on Ctrl-C. It stands on
`worker_processes.WorkerPool`, which also serves tasks that count only when they are finished. `ray` has the
executor for a Ray cluster. This page imports none of them: the pool of an Executor needs a part of one only.
"""
