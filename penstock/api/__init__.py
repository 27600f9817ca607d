"""HTTP: thin routes over `penstock.control.service`. No logic."""
