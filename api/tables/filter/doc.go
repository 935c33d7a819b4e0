// Package filter reads a $filter (protocol/table.md 11) and finds the rows that it lets
// through: Parse reads it, Filter.Plan gives the keys to scan and what is left to test,
// and a Matcher tests one row after the other.
//
// Invariant: the rows of a filter do not depend on the plan. A scan of its Keys with its Rest
// finds what Matcher.Match finds over the whole table.
package filter
