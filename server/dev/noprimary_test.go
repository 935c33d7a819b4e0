package dev

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// setBack has a location lose what one of its nodes, which is stopped, has missed: the others stop, the one starts, ranges
// are re-formed from it with loss, and the others start. The link heals when they have stopped.
func setBack(t *testing.T, c *Cluster, l geo.Location, left geo.NodeID, of ...geo.Service) {
	t.Helper()
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.stopNode(t.Context(), l, id))
		}
	}
	c.link.Heal()
	require.NoError(t, c.startNode(t.Context(), l, left))
	for _, s := range of {
		eventually(t, "the range is re-formed", func() bool {
			_, err := c.recoverRange(t.Context(), l, geo.FirstRange(s), lossAccepted)
			return err == nil
		})
	}
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.startNode(t.Context(), l, id))
		}
	}
}

// R19: an account is taken over by its secondary, the former primary follows, and then the catalog of the one that took it is
// set back to before that, or all of it: each location takes the other one for the primary. Every document names that, with the
// one command that helps. It makes the location that followed the primary, in an epoch above all: writes go on there, nothing is
// missing that reached it, and what the other one alone has is in the lost-and-found there once its copy is made again.
func TestR19AccountWithoutAPrimary(t *testing.T) {
	t.Parallel()
	for name, of := range map[string][]geo.Service{
		"the catalog": {geo.Catalog}, "all": {geo.Catalog, geo.Blob, geo.Queue, geo.Table},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accountWithoutAPrimary(t, of)
		})
	}
}

func accountWithoutAPrimary(t *testing.T, of []geo.Service) {
	c := startFaulty(t)
	k := adminClient(t, c)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	drained(t, c)
	left := follower(c, South)
	require.NoError(t, c.stopNode(t.Context(), South, left))
	promote(t, c, "northacct")
	eventually(t, "the north follows", func() bool {
		a, err := c.locations[North].Directory.Account(t.Context(), "northacct")
		now, there := c.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && there == nil && a.Primary == South && now.Operation == nil
	})
	putEventually(t, c, "northacct", "after")
	arrives := func(value string) {
		t.Helper()
		eventually(t, "it is at the secondary: "+value, func() bool {
			at, err := try(c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k"), "")
			return err == nil && at.status == http.StatusOK && strings.Contains(at.body, `"`+value+`"`)
		})
	}
	arrives("after")
	c.link.Cut()
	put(t, c, "northacct", "only", "only at the south")
	setBack(t, c, South, left, of...)

	var a wire.AccountInfo
	eventually(t, "the account has no primary", func() bool {
		var err error
		a, err = k.Account(t.Context(), "northacct")
		return err == nil && a.WithoutPrimary != ""
	})
	require.Contains(t, a.WithoutPrimary, "failover unplanned northacct --yes makes northcentralus the primary")
	require.Contains(t, a.WithoutPrimary, "docs/runbooks/account-without-primary.md")
	require.Equal(t, South, a.Primary)
	// A location that has just started does not answer every question: what it has is not known then.
	eventually(t, "the geo-replication says so", func() bool {
		g, err := k.GeoReplication(t.Context(), "northacct")
		return err == nil && g.StatusOfPrimary == wire.LocationUnavailable
	})
	eventually(t, "why says so first", func() bool {
		why, err := k.Why(t.Context(), "northacct", 0)
		said := err == nil && len(why.Services) == len(geo.Services)
		for _, s := range why.Services {
			said = said && !s.OK && len(s.Causes) > 0 && s.Causes[0].Detail == a.WithoutPrimary
		}
		return said
	})
	eventually(t, "the lists say so of that account alone", func() bool {
		status, err := k.Status(t.Context())
		all, there := k.Accounts(t.Context())
		for _, s := range status.Accounts {
			all = append(all, wire.AccountInfo{Account: s.Account})
		}
		named := 0
		for _, s := range all {
			if s.WithoutPrimary == a.WithoutPrimary && s.Name == "northacct" && s.Primary == South {
				named++
			} else {
				named -= len(s.WithoutPrimary)
			}
		}
		return err == nil && there == nil && named == 2
	})
	for i, p := range []Ports{c.gateway, c.gateway.At(0), c.gateway.At(1)} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			refused := once(t, p, "northacct", method, entityPath("northacct", "", "k"), `{"v":"x"}`)
			require.Equal(t, http.StatusServiceUnavailable, refused.status, i)
			require.Contains(t, refused.body, "Each location takes another one", "%s at %d", method, i)
		}
	}

	_, err := k.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Failover: &wire.Failover{Type: wire.FailoverUnplanned}})
	require.NoError(t, err)
	eventually(t, "the south has followed and diverged", func() bool {
		now, err := k.Account(t.Context(), "northacct")
		return err == nil && now.Primary == North && now.WithoutPrimary == "" && now.Diverged
	})
	putEventually(t, c, "northacct", "writable")
	_, err = k.UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Rebuild: true})
	require.NoError(t, err)
	eventually(t, "the copy is made again", func() bool {
		now, err := k.Account(t.Context(), "northacct")
		return err == nil && now.Operation == ""
	})
	arrives("writable")
	found := foundValues(t, c, South, "northacct")
	if len(of) == 1 { // Else the south has lost that write with its disks.
		at := once(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "", "only"), "")
		require.True(t, at.status == http.StatusOK || found["only"] == "only at the south", "%d %v", at.status, found)
	}
	require.NotEqual(t, "writable", found["k"], "the primary has it")
}
