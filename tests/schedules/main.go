// Records when the CronJob controller would start Jobs: the times that robfig/cron v3 finds for schedules and time zones.
//
//	go run . > recorded.json
//
// The controller parses `TZ=ZONE SCHEDULE` with ParseStandard (pkg/controller/cronjob/utils.go of Kubernetes).
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

type recorded struct {
	Schedule string   `json:"schedule"`
	Zone     string   `json:"zone"`
	After    string   `json:"after"`
	Times    []string `json:"times"`
	Error    string   `json:"error,omitempty"`
}

// Zones with clocks that change at 01:00 UTC, at local midnight, by half an hour, and never.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut", "Africa/Cairo",
	"Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago", "America/Sao_Paulo",
}

var byHand = []string{
	"17 2 * * *", "30 2 * * *", "0 2 * * *", "0 0 * * *", "0 1 * * *", "59 23 * * *", "*/15 * * * *", "30 * * * *",
	"0 2 * * 0", "0 3 29 2 *", "0 0 31 * *", "0 0 1,15 * 1", "0 0 */2 * 1", "5/20 3 * * MON-FRI", "0 4 ? JAN,jul sun",
	"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "0 0 30 2 *", ", * * * *", "*-9 5 * * *",
	"0 2,3 * 3,10 *", "+5 4 * * *", "0/7 1-3 * * *", "0 0 15 * *", "  7\t8 * *  *",
	// Not schedules.
	"", "* * * *", "* * * * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 * 13 *", "0 0 * 0 *",
	"0 0 * * 7", "0 0 L * *", "0 0 * * 1#2", "5-1 * * * *", "*/0 * * * *", "1/2/3 * * * *", "1-2-3 * * * *", "a * * * *",
	"@reboot", "@Daily", "0 0 * JANUARY *", "-1 * * * *", "*/x * * * *", "0 0 * * mon-xyz", "１ * * * *",
}

func field(random *rand.Rand, low, high int) string {
	number := func() int { return low + random.Intn(high-low+1) }
	switch random.Intn(7) {
	case 0, 1:
		return fmt.Sprint(number())
	case 2:
		return fmt.Sprintf("*/%d", 1+random.Intn(high))
	case 3:
		return fmt.Sprintf("%d,%d", number(), number())
	case 4:
		first := number()
		return fmt.Sprintf("%d-%d", first, first+random.Intn(high-first+1))
	case 5:
		return fmt.Sprintf("%d/%d", number(), 1+random.Intn(high))
	default:
		return "*"
	}
}

func randomSchedule(random *rand.Rand) string {
	fields := []string{field(random, 0, 59), field(random, 0, 23), "*", "*", "*"}
	if random.Intn(2) == 0 {
		fields[2+random.Intn(3)] = "?"
	}
	if random.Intn(3) == 0 {
		fields[2] = field(random, 1, 31)
	}
	if random.Intn(4) == 0 {
		fields[3] = field(random, 1, 12)
	}
	if random.Intn(3) == 0 {
		fields[4] = field(random, 0, 6)
	}
	return strings.Join(fields, " ")
}

func times(schedule, zone, after string) recorded {
	result := recorded{Schedule: schedule, Zone: zone, After: after, Times: []string{}}
	parsed, err := cron.ParseStandard(schedule)
	if err == nil {
		parsed, err = cron.ParseStandard("TZ=" + zone + " " + schedule)
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	moment, err := time.Parse(time.RFC3339, after)
	if err != nil {
		panic(err)
	}
	for range 4 {
		moment = parsed.Next(moment)
		if moment.IsZero() {
			break
		}
		result.Times = append(result.Times, moment.UTC().Format(time.RFC3339))
	}
	return result
}

func main() {
	source := rand.New(rand.NewSource(17))
	count := 60
	if len(os.Args) > 1 {
		fmt.Sscan(os.Args[1], &count)
	}
	// Just before the clocks change somewhere, and a moment in between.
	moments := []string{
		"2026-03-28T22:00:00Z", "2026-10-24T21:30:10Z", "2026-03-08T04:59:59Z", "2026-11-01T03:00:00Z",
		"2026-04-23T20:00:00Z", "2026-10-29T20:00:00Z", "2026-10-03T12:00:00Z", "2026-04-04T12:00:00Z",
		"2026-09-05T20:00:00Z", "2018-11-03T20:00:00Z", "2026-06-15T12:34:56Z",
	}
	cases := []recorded{}
	for place, schedule := range byHand {
		if result := times(schedule, "UTC", moments[0]); result.Error != "" {
			cases = append(cases, result)
			continue
		}
		for number, zone := range zones {
			if number < 3 || (place+number)%3 == 0 {
				cases = append(cases, times(schedule, zone, moments[(place+number)%len(moments)]))
			}
		}
		cases = append(cases, times(schedule, "Europe/Berlin", moments[0]), times(schedule, "Europe/Berlin", moments[1]))
	}
	for range count {
		schedule := randomSchedule(source)
		cases = append(cases, times(schedule, zones[source.Intn(len(zones))], moments[source.Intn(len(moments))]))
	}
	out := os.Stdout
	fmt.Fprintln(out, "[")
	for number, one := range cases {
		line, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		separator := ","
		if number == len(cases)-1 {
			separator = ""
		}
		fmt.Fprintf(out, "%s%s\n", line, separator)
	}
	fmt.Fprintln(out, "]")
}
