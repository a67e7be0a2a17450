"""Classes of linear counting queries over tables of yes/no attributes."""
