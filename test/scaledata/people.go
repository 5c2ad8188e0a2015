package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/signet-idm/signet/internal/domain/user"
)

var (
	firstNames = strings.Fields(`Anna Maria Johanna Sophie Emma Mia Lena Laura Julia Sarah Lisa Katharina Eva Clara Charlotte Marie Camille Léa Chloé Manon Inès Zoë Lucía Sofía Martina
		Paula Carmen Pilar Ana Inés Giulia Chiara Francesca Olga Natalia Agnieszka Zuzanna Ayşe Fatma Zeynep Aisha Fatima Leila Priya Ananya Mei Yuki Sakura Hanna Linnea Freja Ingrid
		John James Robert Michael William David Richard Thomas Charles Daniel Matthew Andrew Paul Mark Peter Hans Jürgen Klaus Jörg Günther Wolfgang Stefan Lukas Felix Maximilian Leon Noah
		Pierre Jean Louis Antoine Étienne François José Antonio Javier Álvaro Íñigo Marco Luca Giovanni Ivan Dmitri Paweł Łukasz Mehmet Mustafa Ömer Ali Mohammed Omar Rajesh Arjun Wei Hiroshi Erik Lars Øyvind Björn Søren 太郎 花子 Δημήτρης Алексей`)
	lastNames = strings.Fields(`Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter Klein Wolf Schröder Neumann Schwarz Zimmermann Braun Krüger
		Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Moore Jackson Martin Lee Thompson White Harris Clark Lewis Robinson Walker Young King Wright O'Brien MacDonald
		Martin Bernard Dubois Durand Lefèvre Moreau Laurent Simon Michel García Fernández González Rodríguez López Martínez Sánchez Pérez Gómez Núñez Rossi Russo Ferrari Esposito Bianchi
		Kowalski Nowak Wiśniewski Ivanov Petrov Smirnov Yılmaz Kaya Demir Şahin Khan Ahmed Patel Singh Kumar Sharma Wang Li Zhang Chen Tanaka Sato Suzuki Andersson Johansson Hansen Olsen Nielsen 山田 佐藤 Παπαδόπουλος Кузнецов`)
	syllables = strings.Fields("ba be bo da de do fa fi ga go ha he ka ko la le li lo ma me mi mo na ne no pa pe ra re ri ro sa se si so ta te ti to va ve wa we za zo")
	trades    = strings.Fields("Bakery Logistics Software Clinic Insurance Foods Energy Press Studio Robotics Textiles Bank Gardens Motors Labs Travel")
	ascii     = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "é", "e", "è", "e", "í", "i", "ó", "o",
		"á", "a", "ñ", "n", "ú", "u", "ë", "e", "ş", "s", "ı", "i", "ł", "l", "ś", "s", "ø", "o", "'", "", "ø", "o")
)

// invented is a name that few others have.
func invented(r *rand.Rand) string {
	var name strings.Builder
	for range 3 + r.IntN(2) {
		name.WriteString(syllables[r.IntN(len(syllables))])
	}
	text := name.String()
	return strings.ToUpper(text[:1]) + text[1:]
}

func orgName(at int) string {
	if at == 0 {
		return "Scale 0"
	}
	r := rand.New(rand.NewPCG(1, uint64(at)))
	return fmt.Sprintf("%s %s %d", invented(r), trades[r.IntN(len(trades))], at)
}

func domainOf(at int) string { return fmt.Sprintf("scale%d.example", at) }

// orgOf is the organization of a user: an eighth of all are in the first one.
func orgOf(at, users, orgs int) int {
	if large := users / 8; at < large || orgs == 1 {
		return 0
	} else {
		return 1 + (at-large)%(orgs-1)
	}
}

// person makes somebody up; the number makes the user name unique.
func person(at, in int) user.NewHuman {
	r := rand.New(rand.NewPCG(2, uint64(at)))
	// some are frequent
	first, last := firstNames[min(r.IntN(len(firstNames)), r.IntN(len(firstNames)))],
		lastNames[min(r.IntN(len(lastNames)), r.IntN(len(lastNames)))]
	switch r.IntN(10) {
	case 0:
		last = invented(r)
	case 1:
		last += "-" + lastNames[r.IntN(len(lastNames))]
	}
	mail := addressOf(first) + "." + addressOf(last)
	name := fmt.Sprintf("%s%d", mail, at)
	domain := domainOf(in)
	if r.IntN(4) == 0 {
		domain = []string{"mail.example", "post.example", "example.com", "example.org"}[r.IntN(4)]
	}
	p := user.Profile{FirstName: first, LastName: last, PreferredLanguage: []string{"en", "de", "fr", "es"}[r.IntN(4)]}
	if r.IntN(20) == 0 {
		p.NickName = invented(r)
	}
	return user.NewHuman{UserName: name, Email: name + "@" + domain, EmailVerified: r.IntN(3) > 0, Profile: p}
}

// addressOf is a name as it stands in an address.
func addressOf(name string) string {
	text := strings.Map(func(r rune) rune {
		if r == '-' || 'a' <= r && r <= 'z' {
			return r
		}
		return -1
	}, ascii.Replace(strings.ToLower(name)))
	if text = strings.Trim(text, "-"); text == "" {
		return "x"
	}
	return text
}
