"""Arrays in ``.npy`` files: mapped into memory, and looked at before anything relies on them."""
