// Package check finds what is wrong in the status of a deployment: one finding for each cause, worst first, with what to do
// next. What follows from a cause that is found is not found again: the ranges of a location that is down, or its accounts.
//
// Invariant: what the status does not show is never found to be well. A location that does not answer is a finding.
package check
