"""What `bench_explanations.py` compares: documents, models, and one file per kind of explainer."""
