// Package command has what the command lines of antipode and antipodectl share: exit codes, sizes with units, and
// manual pages.
//
// Invariant: an exit code means the same in both programs, and docs/admin.md has the table.
package command
