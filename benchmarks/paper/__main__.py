"""Run all experiments: ``python -m benchmarks.paper [--reviews FOLDER]`` (``make paper``)."""

from .run import main

raise SystemExit(main())
