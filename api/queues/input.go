package queues

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/storageerr"
)

// Limits of parameters, in seconds but for messagesMax (protocol/queue.md 2).
const (
	messagesMax       = 32
	visibilityDefault = 30
	visibilityMax     = 604_800
	// visibilityMaxOld is that of a get before 2011-08-18.
	visibilityMaxOld = 7_200
	ttlDefault       = 604_800
	// ttlMaxOld is the longest life before 2017-07-29.
	ttlMaxOld = 604_800
	// ttlNever is the parameter of a message that never expires. A longer life than a
	// time.Duration holds, some 292 years, counts as this.
	ttlNever = -1
)

// number reads a parameter from least to most; without a value it is the default.
func (c *call) number(name string, byDefault, least, most int64) (int64, error) {
	text := c.r.Query.Get(name)
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 64) // Out of its range it is the nearest number.
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, wire.BadParameter(name, text, "The value is not a number.")
	}
	if n < least || n > most {
		return 0, storageerr.OutOfRangeQueryParam.With("QueryParameterName", name, "QueryParameterValue", text,
			"MinimumAllowed", strconv.FormatInt(least, 10), "MaximumAllowed", strconv.FormatInt(most, 10))
	}
	return n, nil
}

// limit is how many messages a get or a peek returns at most.
func (c *call) limit() (int, error) {
	n, err := c.number("numofmessages", 1, 1, messagesMax)
	return int(n), err
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// hidden is how long a get hides messages.
func (c *call) hidden() (time.Duration, error) {
	most := int64(visibilityMax)
	if c.r.Version < protocol.Version20110818 {
		most = visibilityMaxOld
	}
	n, err := c.number("visibilitytimeout", visibilityDefault, 1, most)
	return seconds(n), err
}

// life is how long a message lives and is hidden at first (protocol/queue.md 9.1). Below zero ttl is for ever.
func (c *call) life() (ttl, delay time.Duration, err error) {
	n, err := c.ttl()
	if err != nil || c.r.Version < protocol.Version20110818 {
		return seconds(n), 0, err // It had no visibilitytimeout.
	}
	d, err := c.number("visibilitytimeout", 0, 0, visibilityMax)
	if err == nil && n != ttlNever && d >= n {
		sent := c.r.Query.Get("visibilitytimeout")
		err = wire.BadParameter("visibilitytimeout", sent, "messagettl must be greater than visibilitytimeout")
	}
	return seconds(n), seconds(d), err
}

func (c *call) ttl() (int64, error) {
	old, reason := c.r.Version < protocol.Version20170729, "The value is a number of seconds above zero, or -1."
	if old {
		reason = "The value is a number of seconds above zero."
	}
	text := c.r.Query.Get("messagettl")
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case text == "" || errors.Is(err, strconv.ErrSyntax) || n > 0 && old:
		return c.number("messagettl", ttlDefault, 1, ttlMaxOld)
	case n > math.MaxInt64/int64(time.Second) || n == ttlNever && !old:
		return ttlNever, nil
	case n > 0:
		return n, nil
	}
	return 0, wire.BadParameter("messagettl", text, reason)
}

// required returns a parameter that the operation needs.
func (c *call) required(name string) (string, error) {
	v := c.r.Query.Get(name)
	if v == "" {
		return "", storageerr.MissingQueryParameter.With("QueryParameterName", name)
	}
	return v, nil
}

// receipt returns the popreceipt parameter, which is Base64. A plus sign that a client left raw came as a space
// (protocol/queue.md 9.4).
func (c *call) receipt() (string, error) {
	v, err := c.required("popreceipt")
	return strings.ReplaceAll(v, " ", "+"), err
}
