"""Tables, figures and one page from what a run stored; nothing here trains or evaluates."""
