package main

import (
	"regexp"

	"antipode/server/cluster"
	"antipode/server/dev"
	"antipode/test/rest"
)

// scene is a state of the cluster, and what is looked at in it.
type scene struct {
	// title is the heading of its section on the page.
	title string
	// keep begins in the state of the scene before; else all is well first.
	keep bool
	// kill are the processes that are killed, do the command of antipodectl that is given after that, if any.
	kill []string
	do   string
	look []look
}

// look is a command whose screen is taken once it shows the state: a killed process is missed after some seconds.
type look struct {
	command string
	until   *regexp.Regexp
}

// screen names one block of the page: the heading it is under, and its command.
type screen struct{ title, command string }

const (
	check   = "check"
	north   = string(dev.North)
	south   = string(dev.South)
	account = string(rest.DevAccount)
)

// scenes are those of the page, in its order.
func scenes() []scene {
	at := func(command, until string) look { return look{command, regexp.MustCompile(until)} }
	primary := []string{north + "-1", north + "-2", north + "-3"}
	return []scene{
		{title: "All is well", look: []look{
			at(check, `\Aall is well`),
			at("status", `\Ahealth +all is well(?s:.*)`+north+` .* 12 of 12 .*\n`+south+` .* 12 of 12 (?s:.*) live `),
		}},
		{title: "The link is cut", do: "link cut", look: []look{at(check, `the link .* is cut`)}},
		{title: "The witness is dead", kill: []string{cluster.WitnessName}, look: []look{
			// Later than the first warning: leases have ended.
			at(check, `\ACRITICAL +the witness \S+ does not answer(?s:.*)refused at `+north+`, `+south),
		}},
		{title: "A node is dead", kill: primary[1:2], look: []look{
			// Not the moment before its ranges have another leader, in which that is critical.
			at(check, `\AWARNING +`+north+`: 1 of 3 nodes`),
			at("nodes", `-2 +unreachable`),
		}},
		{title: "The primary is dead", kill: primary, look: []look{
			at(check, `\ACRITICAL +`+north+` is down`),
			at("failover check "+account, `blocked `),
			at("failover unplanned "+account, `nothing was changed`),
		}},
		{title: "After the failover", keep: true, do: "failover unplanned " + account + " --yes", look: []look{
			at("status", account+` +`+south+` (?s:.*UNDER WAY.*no node takes it)`),
		}},
	}
}
