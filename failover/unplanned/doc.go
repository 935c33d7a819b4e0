// Package unplanned makes the secondary of an account its primary without asking the present one:
// the promotion (R20), its claim at the witness (R21), and what is refused of a copy that a
// recovery left a part of (R4).
//
// Invariant (R20): a promotion is committed only once the copy is frozen in every range, and after
// the catalog keeps where it ends in each stream.
package unplanned
