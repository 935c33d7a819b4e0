// Package witness keeps, at a third place, one lease for each location and the claims of promotions (R21). So a
// former primary that nobody can reach stops acknowledging writes before another location begins.
//
// Invariants: a claim is durable, and listed in every answer to a renewal, before Claim returns; the time that Claim
// returns is over only when no lease that was granted before the claim can be held any more. A lease that is granted
// after a claim does not hold for the account of the claim.
//
// Leases are kept in memory. A witness that starts waits for those that it may have granted before: it takes each location
// to have been granted one at that moment. So does the time of the longest lease outlive a restart, in the file.
//
// Clocks: at the location a lease runs for HoldPart of the time to live, from before the question was sent. At the
// witness it runs for all of that time, from after the question came. Both read clocks that count suspension (R5).
// The promoting location waits for what the witness says by its clock. With clocks whose rates are off by e each,
// this is safe as long as (1-e)/(1+e) is at least HoldPart: 11 % with 4/5. The clock that the kernel slews is off by
// less: 8.3 % is what chrony allows at most, 0.05 % what ntpd does.
package witness
