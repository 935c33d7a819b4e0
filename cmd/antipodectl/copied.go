package main

import (
	"fmt"
	"io"

	"antipode/client/admin"
)

// writeCopied writes how far a bootstrap is, for one account.
func writeCopied(w io.Writer, c *admin.Copied) {
	of := c.CopySize
	share := func(done, _ string) string { return done }
	if c.Total != nil {
		of, share = *c.Total, func(done, all string) string { return done + " of " + all }
	}
	_, _ = fmt.Fprintf(w, "copied: %s%s rows, %s, with %s of payload\n", percent(c, ": "), share(fmt.Sprint(c.Rows), fmt.Sprint(of.Rows)),
		share(size(c.Bytes), size(of.Bytes)), share(size(c.PayloadBytes), size(of.PayloadBytes)))
	bound := ""
	if c.BytesPerSecondMax > 0 {
		bound = fmt.Sprintf(" of at most %s/s", size(c.BytesPerSecondMax))
	}
	_, _ = fmt.Fprintf(w, "rate: %s%s; time left, an estimate: %s; not yet acknowledged: %s\n", rate(c), bound, left(c), size(c.WaitingBytes))
}

// copyRows are the rows of a table of bootstraps, below its header; none without one.
func copyRows(accounts []admin.AccountStatus) (rows [][]string) {
	for _, a := range accounts {
		c := a.Copied
		if c == nil {
			continue
		}
		all, allBytes := unknown, unknown
		if c.Total != nil {
			all, allBytes = fmt.Sprint(c.Total.Rows), size(c.Total.Bytes+c.Total.PayloadBytes)
		}
		rows = append(rows, []string{
			string(a.Name), orUnknown(percent(c, "")), fmt.Sprintf("%d of %s", c.Rows, all),
			size(c.Bytes+c.PayloadBytes) + " of " + allBytes, rate(c), left(c), size(c.WaitingBytes),
		})
	}
	return rows
}

// percent is empty while it is not known.
func percent(c *admin.Copied, then string) string {
	if c.Percent == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", *c.Percent) + then
}

func rate(c *admin.Copied) string {
	if c.BytesPerSecond == nil {
		return unknown
	}
	return size(uint64(max(0, *c.BytesPerSecond))) + "/s"
}

func left(c *admin.Copied) string {
	if c.SecondsLeft == nil {
		return unknown
	}
	return span(*c.SecondsLeft)
}

func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}
