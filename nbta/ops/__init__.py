"""Operations: each is one record, with its shape rule, evaluation and gradient together."""
