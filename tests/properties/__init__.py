"""Laws that hold for every graph: any completion order, any cut of the log, any checkpoint give the same run."""
