"""Small models of BERT's kind, made from scratch."""
