package normalize_test

import (
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
)

// A connection URI keeps what it points at and loses who connects.
func TestCredentialsAreStripped(t *testing.T) {
	for uri, want := range map[string]string{
		"postgres://db:5432/shop":                                                 "postgres://db:5432/shop",
		"postgres://ann:secret@db:5432/shop":                                      "postgres://db:5432/shop",
		"postgres://ann:s@cret@db:5432/shop":                                      "postgres://db:5432/shop",
		"postgres://ann@db":                                                       "postgres://db",
		"jdbc:postgresql://ann:secret@db/shop?ssl=true":                           "jdbc:postgresql://db/shop?ssl=true",
		"https://host/path/a@b":                                                   "https://host/path/a@b",
		"https://host?mail=a@b":                                                   "https://host?mail=a@b",
		"s3://bucket/key":                                                         "s3://bucket/key",
		"no uri at all":                                                           "no uri at all",
		"jdbc:mysql://db/shop?user=ann&password=s":                                "jdbc:mysql://db/shop",
		"jdbc:mysql://db/shop?user=ann&ssl=true&Password=s":                       "jdbc:mysql://db/shop?ssl=true",
		"jdbc:mysql://db/shop?ssl=true&password=s@x&a=1":                          "jdbc:mysql://db/shop?ssl=true&a=1",
		"jdbc:sqlserver://db:1433;user=sa;password=p@s;database=d":                "jdbc:sqlserver://db:1433;database=d",
		"https://host/x?token=s#part":                                             "https://host/x#part",
		"https://host/x?password":                                                 "https://host/x?password",
		`jdbc:oracle:thin:scott/tiger@//h:1521/s`:                                 `jdbc:oracle:thin:@//h:1521/s`,
		`jdbc:oracle:thin:scott/tiger@h:1521:s`:                                   `jdbc:oracle:thin:@h:1521:s`,
		`jdbc:oracle:thin:scott/ti@ger@h:1521:s`:                                  `jdbc:oracle:thin:@h:1521:s`,
		`jdbc:oracle:thin:@//h:1521/s`:                                            `jdbc:oracle:thin:@//h:1521/s`,
		`jdbc:oracle:thin:@h:1521:s`:                                              `jdbc:oracle:thin:@h:1521:s`,
		`jdbc:oracle:oci:scott/tiger@(DESCRIPTION=(ADDRESS=(HOST=h)(PORT=1521)))`: `jdbc:oracle:oci:@(DESCRIPTION=(ADDRESS=(HOST=h)(PORT=1521)))`,
		`jdbc:oracle:thin:scott/tiger@tcps://h:1521/s?mail=a@b`:                   `jdbc:oracle:thin:@tcps://h:1521/s?mail=a@b`,
		`oracle:thin:scott/tiger@h`:                                               `oracle:thin:@h`,
		`oracle://u:p@h:1521/s`:                                                   `oracle://h:1521/s`,
		`scott/tiger@//h:1521/s`:                                                  `@//h:1521/s`,
		`//u:p@h/db`:                                                              `//h/db`,
		`u:p@h/db`:                                                                `h/db`,
		`u:p@h`:                                                                   `h`,
		`u:p?w@h/db`:                                                              `h/db`,
		`u:p@tcp(h:3306)/db`:                                                      `tcp(h:3306)/db`,
		`jdbc:mysql:u:p@h/db`:                                                     `jdbc:mysql:h/db`,
		`postgresql://u:p?w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:p#w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:p;w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:p/w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:p&w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:1?w@h/db`:                                                 `postgresql://h/db`,
		`postgresql://u:p?w=1@h/db`:                                               `postgresql://h/db`,
		`postgresql://u:p@w?x@h/db`:                                               `postgresql://h/db`,
		`mongodb://u:p@h:1,i:2/db`:                                                `mongodb://h:1,i:2/db`,
		`https://h/x?proxy=http://u:p@i:80`:                                       `https://h/x?proxy=http://i:80`,
		`jdbc:db2://h:50000/db:user=a;password=b;`:                                `jdbc:db2://h:50000/db`,
		`db2://h:50000/db:user=a;sslConnection=true;password=b;`:                  `db2://h:50000/db:sslConnection=true;`,
		`jdbc:teradata://h/USER=u,PASSWORD=p,DATABASE=x`:                          `jdbc:teradata://h/DATABASE=x`,
		`jdbc:mysql://(host=h,port=1,user=u,password=p)/db`:                       `jdbc:mysql://(host=h,port=1)/db`,
		`jdbc:mysql://address=(host=h)(user=u)(password=p)/db`:                    `jdbc:mysql://address=(host=h)/db`,
		`jdbc:sqlserver://h;password={a;b}}c};database=d`:                         `jdbc:sqlserver://h;database=d`,
		`jdbc:sqlserver://h;password=a&b=c;database=d`:                            `jdbc:sqlserver://h;database=d`,
		`Server=h;User Id=a;Password=p;Database=d`:                                `Server=h;Database=d`,
		`Server=tcp:h,1433;User ID=a@s;Password=p`:                                `Server=tcp:h,1433`,
		`host=h user=u password='p w' port=1`:                                     `host=h port=1`,
		`password=p host=h`:                                                       `host=h`,
		`jdbc:postgresql://h/db?password=a;b#c&ssl=true`:                          `jdbc:postgresql://h/db?ssl=true`,
		`https://h/x#access_token=s`:                                              `https://h/x`,
		`https://h/x?a=1&b&pass%77ord=s&c`:                                        `https://h/x?a=1&b&c`,
		`x://h/p?SecretAccessKey=s3cret&a=1`:                                      `x://h/p?a=1`,
		`x://h/p?sfPassword=s3cret&a=1`:                                           `x://h/p?a=1`,
		`x://h/p?sfUser=s3cret&a=1`:                                               `x://h/p?a=1`,
		`x://h/p?private_key_pwd=s3cret&a=1`:                                      `x://h/p?a=1`,
		`x://h/p?sig=s3cret&a=1`:                                                  `x://h/p?a=1`,
		`x://h/p?AWS_SECRET_ACCESS_KEY=s3cret&a=1`:                                `x://h/p?a=1`,
		`x://h/p?AWSAccessKeyId=s3cret&a=1`:                                       `x://h/p?a=1`,
		`x://h/p?sslpassword=s3cret&a=1`:                                          `x://h/p?a=1`,
		`x://h/p?apikey=s3cret&a=1`:                                               `x://h/p?a=1`,
		`x://h/p?api_key=s3cret&a=1`:                                              `x://h/p?a=1`,
		`x://h/p?api-key=s3cret&a=1`:                                              `x://h/p?a=1`,
		`x://h/p?client_secret=s3cret&a=1`:                                        `x://h/p?a=1`,
		`x://h/p?accountkey=s3cret&a=1`:                                           `x://h/p?a=1`,
		`x://h/p?sharedaccesssignature=s3cret&a=1`:                                `x://h/p?a=1`,
		`x://h/p?SharedAccessKey=s3cret&a=1`:                                      `x://h/p?a=1`,
		`x://h/p?passphrase=s3cret&a=1`:                                           `x://h/p?a=1`,
		`x://h/p?pass=s3cret&a=1`:                                                 `x://h/p?a=1`,
		`x://h/p?db_pass=s3cret&a=1`:                                              `x://h/p?a=1`,
		`x://h/p?X-Amz-Signature=s3cret&a=1`:                                      `x://h/p?a=1`,
		`x://h/p?X-Amz-Security-Token=s3cret&a=1`:                                 `x://h/p?a=1`,
		`x://h/p?X-Amz-Credential=s3cret&a=1`:                                     `x://h/p?a=1`,
		`x://h/p?token_value=s3cret&a=1`:                                          `x://h/p?a=1`,
		`x://h/p?tokens=s3cret&a=1`:                                               `x://h/p?a=1`,
		`x://h/p?fs.azure.account.key.h.secret=s3cret&a=1`:                        `x://h/p?a=1`,
		`x://h/p?PWD=s3cret&a=1`:                                                  `x://h/p?a=1`,
		`x://h/p?UID=s3cret&a=1`:                                                  `x://h/p?a=1`,
		`s3://bucket/a@b/c`:                                                       `s3://bucket/a@b/c`,
		`file:/x?y=1`:                                                             `file:/x?y=1`,
		`file:/x@y`:                                                               `file:/x@y`,
		`postgres://db-1:5432`:                                                    `postgres://db-1:5432`,
		`duckdb:///data/x.duckdb`:                                                 `duckdb:///data/x.duckdb`,
		`https://h/p#frag`:                                                        `https://h/p#frag`,
		`hdfs://nn:8020/user=x/`:                                                  `hdfs://nn:8020/user=x/`,
		`hdfs://nn:8020/user=x`:                                                   `hdfs://nn:8020/user=x`,
		`hdfs://nn:8020/a@b`:                                                      `hdfs://nn:8020/a@b`,
		`s3://b/password=x/y=1`:                                                   `s3://b/password=x/y=1`,
		`abfss://box@account.dfs.core.windows.net/p`:                              `abfss://box@account.dfs.core.windows.net/p`,
		`jdbc:sqlite:/data/a@b.db`:                                                `jdbc:sqlite:/data/a@b.db`,
		`jdbc:sqlite:C:/data/a@b.db`:                                              `jdbc:sqlite:C:/data/a@b.db`,
		`git@github.com:a/b`:                                                      `git@github.com:a/b`,
		`arn:aws:s3:::bucket/a@b`:                                                 `arn:aws:s3:::bucket/a@b`,
		`https://h:80?mail=a@b`:                                                   `https://h:80?mail=a@b`,
		`kafka://a:1,b:2/x@y`:                                                     `kafka://a:1,b:2/x@y`,
		`http://[::1]:80/a@b`:                                                     `http://[::1]:80/a@b`,
		`jdbc:hive2://h:1/db;principal=hive/_HOST@R?a=1#b=2`:                      `jdbc:hive2://h:1/db;principal=hive/_HOST@R?a=1#b=2`,
		`snowflake://acct.eu/db?warehouse=w&role=r`:                               `snowflake://acct.eu/db?warehouse=w&role=r`,
		`jdbc:mysql://h/db?tcpKeepAlive=true&keyspace=k&sslmode=require`:          `jdbc:mysql://h/db?tcpKeepAlive=true&keyspace=k&sslmode=require`,
		`bigquery`: `bigquery`,
		``:         ``,
		`?`:        `?`,
		`@`:        `@`,
		`://`:      `://`,
		`=`:        `=`,
	} {
		n := normalizer(t)
		e := factOf(t, n, with(t, runEvent, "inputs", `[{"namespace": "db", "name": "a", "facets": {"dataSource": {"uri": "`+uri+`"}}}]`))
		if got := e.Facets[0].Value; got != `{"uri":"`+want+`"}` {
			t.Errorf("%s: entity facet %s, want %s", uri, got, want)
		}
	}
	at := func(secret string) string {
		return with(t, runEvent, "inputs", `[{"namespace": "db", "name": "a", "facets": {"dataSource": {"uri": "postgres://ann:`+secret+`@db/shop"}}}]`)
	}
	expect(t, fact.Equivalent, at("one"), at("other"))
	if doc := document(t, normalizer(t), with(t, datasetEvent, "dataset.facets.dataSource.uri", `"postgres://ann:secret@db"`)); strings.Contains(doc, "secret") {
		t.Errorf("a password is in %s", doc)
	}
}
