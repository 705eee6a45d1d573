// Package architecture holds graphd's structure by tests: which package may
// import which, that each says what it is for, and that files stay readable.
package architecture
