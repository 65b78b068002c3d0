"""The knowledge base shipped with biograft: common medical concepts, written by hand."""
