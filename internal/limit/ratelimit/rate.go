// Package ratelimit counts requests against limits: so many in a time, for each caller, organization or network.
package ratelimit

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Rate is how many requests are let through in a time. The zero value is no limit.
type Rate struct {
	Requests int
	Per      time.Duration
}

// maxRequests keeps the time that one request costs above zero.
const maxRequests = 1_000_000

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

var errRate = errors.New("must be a number of requests and a unit of time, such as 100/s, 6000/m or 100000/h with at most 1000000 requests, or off")

// Parse reads a rate: 100/s, 6000/m, 100000/h, or off.
func Parse(text string) (Rate, error) {
	if text == "off" {
		return Rate{}, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	per, known := units[unit]
	if err != nil || !known || n < 1 || n > maxRequests || strconv.Itoa(n) != number {
		return Rate{}, errRate
	}
	return Rate{Requests: n, Per: per}, nil
}

// String is the text that Parse reads.
func (r Rate) String() string {
	for unit, per := range units {
		if r.Requests > 0 && r.Per == per {
			return strconv.Itoa(r.Requests) + "/" + unit
		}
	}
	return "off"
}
