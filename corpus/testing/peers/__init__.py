"""Other people's tools on the same job, as scripts that run under a Python of their own and import nothing of ours.

Each reads one JSON document from the file named by its first argument, does its work once, and prints one JSON line:
`items` and `bytes`. What it costs is measured from outside (`corpus.app.bench_peers`).
"""
