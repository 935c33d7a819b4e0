// Package support gathers what a process knows of itself for those who look for a fault: antipodectl support-bundle.
//
// Invariant: no key, password, token or signature is in it. Of files with secrets the configuration has only the names.
package support
