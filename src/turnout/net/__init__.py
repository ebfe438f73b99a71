"""The one room that opens connections: where it may go, how long it waits, when it stops trying."""
