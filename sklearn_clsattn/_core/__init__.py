"""The numerical code of the default fit: model, loss, solver and fitted form."""
