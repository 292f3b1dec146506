"""What turns `docs/` into a site: the reference made from code, and the builder's hook. Not part of the package."""
