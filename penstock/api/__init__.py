"""HTTP: thin routes over `penstock.control.documents.service`. No logic."""
