// Package sites sets whole locations back, swaps their folders, makes their clocks leap and fills their disks, on the
// deployment of package rig. What clients saw acknowledged is in a ledger outside, and Last Sync Time is compared with
// what -secondary has.
//
// Invariant: no acknowledged write is lost without a word: it is at the primary, in a lost-and-found or in a report.
package sites
