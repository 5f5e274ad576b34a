#!/bin/sh
# count.sh FILE prints how many lines of FILE are not empty.
set -eu
grep -c '' $1
