package main

import (
	"fmt"
	"io"
	"time"

	"antipode/client/check"
	"antipode/client/drill"
)

func writeDrillPlan(w io.Writer, p drillPlan) {
	if !p.Unplanned {
		writePlan(w, p.failoverPlan)
	} else {
		writePlanState(w, p.failoverPlan)
		writeBlocked(w, p.Blocked)
		_, _ = fmt.Fprintf(w, "loses      acknowledged writes of all clients of the account that have not arrived at %s\n", p.To)
		if p.Kill != "" {
			_, _ = fmt.Fprintf(w, "stops      location %s, with all accounts that it serves, %s\n", p.From, p.Kill)
		}
	}
	for i, s := range p.Steps {
		_, _ = fmt.Fprintf(w, "step %d     %s\n", i+1, s)
	}
	writeUnchanged(w, p.Blocked, "nothing was changed: --yes moves the account there and back")
}

func writeDrill(w io.Writer, r *drill.Report) {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
	_, _ = fmt.Fprintf(w, "drill of %s: %s of it %s gone; both copies: %s\n", r.Account, check.Count(r.Lost, "acknowledged write"), check.Are(r.Lost), orDash(r.Verify))
	if r.Unplanned != nil {
		writeUnplanned(w, r)
	}
	rows := [][]string{{"STEP", "TOOK", "WRITES STOOD", "READS STOOD", "SECONDARY READS STOOD", "FAILED"}}
	for _, m := range r.Moves {
		rows = append(rows, []string{
			m.Name, ms(m.Took()), ms(m.Stood[drill.Writes]), ms(m.Stood[drill.PrimaryReads]), ms(m.Stood[drill.SecondaryReads]), orNone(m.Failed),
		})
	}
	table(w, rows)
	rows = [][]string{{"REQUESTS", "DONE", "FAILED", "P50", "P99", "MOST"}}
	for _, s := range r.Seen {
		rows = append(rows, []string{string(s.Kind), fmt.Sprint(s.Done), fmt.Sprint(s.Failed), ms(s.P50), ms(s.P99), ms(s.Most)})
	}
	table(w, rows)
	_, _ = fmt.Fprintf(w, "no read of either name succeeded for %s at most\n", ms(r.NeitherRead))
	for _, f := range r.Errors {
		_, _ = fmt.Fprintf(w, "%d %s failed: %s\n", f.N, f.Kind, f.Says)
	}
}

// writeUnplanned writes what a drill has found about an unplanned failover.
func writeUnplanned(w io.Writer, r *drill.Report) {
	u := r.Unplanned
	killed, rto, followed := "it lived", "none", "has not followed"
	if u.Killed != "" {
		killed = "it was stopped " + u.Killed
	}
	if u.DeadAfter != nil {
		killed += fmt.Sprintf(", no node of it answered %s after that", u.DeadAfter.Round(time.Millisecond))
	}
	if u.Lived {
		killed = fmt.Sprintf("it was to be stopped %s, and lived on: the failover was beside a live primary", u.Killed)
	}
	if u.RTO != nil {
		rto = fmt.Sprint(u.RTO.Round(time.Millisecond))
	}
	switch {
	case u.Followed && u.Rebuilt:
		followed = "has followed with its copy made again"
	case u.Followed:
		followed = "has followed without a copy"
	}
	_, _ = fmt.Fprintf(w, "primary    %s, and %s\n", killed, followed)
	_, _ = fmt.Fprintf(w, "RTO        %s until the new primary acknowledged a write\n", rto)
	_, _ = fmt.Fprintf(w, "RPO        %s: the span of the drill's acknowledged writes that are gone\n", u.RPO.Round(time.Millisecond))
	if u.Compared {
		_, _ = fmt.Fprintf(w, "lost list  %s of the drill; of the writes that are gone %d not in it, and %d at or below the Last Sync Time that was stated\n",
			check.Count(u.Listed, "change"), u.Unlisted, u.Promised)
	}
	for _, c := range u.Claims {
		_, _ = fmt.Fprintf(w, "claim      %s, epoch %s: %s, %d perhaps answered, %s\n", c.Service, c.Epoch, check.Count(c.Changes, "change"), c.Perhaps, claimText(c))
	}
	if len(u.Stated) > 0 {
		writeStated(w, u.Stated, nil)
	}
}
