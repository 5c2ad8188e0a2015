// Package faults lets a cluster of PostgreSQL fail over under load, again and again: Patroni with etcd and three
// members, behind an address with all hosts, behind HAProxy and behind PgBouncer. make faults runs it; it takes too
// long for make test, which has a small one in test/program.
package faults
