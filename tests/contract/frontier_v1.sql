BEGIN TRANSACTION;
CREATE TABLE authority (host INTEGER NOT NULL, authority TEXT NOT NULL, kind INTEGER NOT NULL, outcome TEXT NOT NULL, status INTEGER,
    digest TEXT NOT NULL, read_at REAL NOT NULL, expires_at REAL NOT NULL, detail TEXT NOT NULL, url TEXT NOT NULL,
    truncated INTEGER NOT NULL, since REAL, PRIMARY KEY (host, authority, kind)) WITHOUT ROWID;
CREATE TABLE counted (host INTEGER NOT NULL, h INTEGER NOT NULL, reason INTEGER NOT NULL, PRIMARY KEY (host, h)) WITHOUT ROWID;
CREATE TABLE domain (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, due_set REAL NOT NULL DEFAULT 0, due_wait REAL NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0);
INSERT INTO "domain" VALUES(1,'site.test',0.0,0.0,1);
CREATE TABLE exclusion (host INTEGER NOT NULL, reason INTEGER NOT NULL, kept INTEGER NOT NULL, counted INTEGER NOT NULL,
    PRIMARY KEY (host, reason)) WITHOUT ROWID;
CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, domain INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'new',
    reason TEXT NOT NULL DEFAULT '', pace_s REAL NOT NULL DEFAULT 0, latency_s REAL NOT NULL DEFAULT 0,
    latency_median_s REAL NOT NULL DEFAULT 0, due_set REAL NOT NULL DEFAULT 0, due_wait REAL NOT NULL DEFAULT 0, crawl_delay_s REAL,
    strikes INTEGER NOT NULL DEFAULT 0, ips TEXT NOT NULL DEFAULT '', pages INTEGER NOT NULL DEFAULT 0, queued INTEGER NOT NULL DEFAULT 0);
INSERT INTO "host" VALUES(1,'www.site.test',1,'active','',4.0,0.0,0.0,0.0,0.0,NULL,0,'',1,2);
CREATE TABLE kind_name (code INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO "kind_name" VALUES(0,'page');
INSERT INTO "kind_name" VALUES(1,'sitemap');
INSERT INTO "kind_name" VALUES(2,'robots');
INSERT INTO "kind_name" VALUES(3,'tdmrep');
INSERT INTO "kind_name" VALUES(4,'ai-txt');
INSERT INTO "kind_name" VALUES(5,'rsl');
CREATE TABLE mark (src INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "meta" VALUES('applied',0);
INSERT INTO "meta" VALUES('clean',1);
INSERT INTO "meta" VALUES('epoch',1);
INSERT INTO "meta" VALUES('owner','old');
INSERT INTO "meta" VALUES('schema',1);
INSERT INTO "meta" VALUES('sent',0);
CREATE TABLE outbox (seq INTEGER PRIMARY KEY, dst INTEGER NOT NULL, url TEXT NOT NULL, found TEXT NOT NULL, depth INTEGER NOT NULL,
    kind INTEGER NOT NULL, hops INTEGER NOT NULL, via TEXT NOT NULL, priority REAL NOT NULL);
CREATE TABLE segment (file INTEGER PRIMARY KEY, acked_end INTEGER NOT NULL);
INSERT INTO "segment" VALUES(1,30);
CREATE TABLE state_name (code INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO "state_name" VALUES(1,'queued');
INSERT INTO "state_name" VALUES(2,'queued');
INSERT INTO "state_name" VALUES(3,'parked');
INSERT INTO "state_name" VALUES(4,'fetched');
INSERT INTO "state_name" VALUES(5,'not-modified');
INSERT INTO "state_name" VALUES(6,'redirected');
INSERT INTO "state_name" VALUES(7,'refused');
INSERT INTO "state_name" VALUES(8,'failed');
INSERT INTO "state_name" VALUES(9,'gone');
INSERT INTO "state_name" VALUES(10,'excluded');
CREATE TABLE tally (page INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (page, state, reason)) WITHOUT ROWID;
INSERT INTO "tally" VALUES(1,'fetched','',1);
INSERT INTO "tally" VALUES(1,'queued','',2);
CREATE TABLE url (host INTEGER NOT NULL, uid BLOB NOT NULL, state INTEGER NOT NULL, front INTEGER NOT NULL, depth INTEGER NOT NULL,
    hops INTEGER NOT NULL, kind INTEGER NOT NULL, attempts INTEGER NOT NULL, reason INTEGER NOT NULL, claim INTEGER NOT NULL,
    due_at REAL, due_wait REAL, via INTEGER NOT NULL, tail TEXT NOT NULL, found TEXT, PRIMARY KEY (host, uid)) WITHOUT ROWID;
INSERT INTO "url" VALUES(1,X'1A2E22C9FE90206FEE4B707F3699697B',4,36,1,0,0,1,0,500,1500.0,500.0,1,'/page/1',NULL);
INSERT INTO "url" VALUES(1,X'E58BAEA024104DE26DD9B94E977EA361',1,36,1,0,0,0,0,500,NULL,NULL,1,'/page/2',NULL);
INSERT INTO "url" VALUES(1,X'EF2355AB06F8FA4529AD1358CEF3B2EE',1,36,1,0,0,0,0,500,NULL,NULL,1,'/page/3',NULL);
CREATE TABLE via (id INTEGER PRIMARY KEY, url NOT NULL);
INSERT INTO "via" VALUES(0,'');
INSERT INTO "via" VALUES(1,'https://www.site.test/');
CREATE TABLE visit (host INTEGER NOT NULL, uid BLOB NOT NULL, http_status INTEGER, content_type INTEGER NOT NULL,
    fetched_at REAL, file INTEGER NOT NULL, offset INTEGER, length INTEGER, content_sha256 BLOB,
    simhash INTEGER, near_original TEXT, etag TEXT, last_modified TEXT, target TEXT, rule INTEGER NOT NULL, rule_line INTEGER,
    authority_digest INTEGER NOT NULL, protocol INTEGER NOT NULL, PRIMARY KEY (host, uid)) WITHOUT ROWID;
INSERT INTO "visit" VALUES(1,X'1A2E22C9FE90206FEE4B707F3699697B',200,0,1000.0,1,10,20,X'ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB',NULL,NULL,'"x"',NULL,NULL,0,NULL,0,0);
CREATE TABLE word (id INTEGER PRIMARY KEY, text NOT NULL UNIQUE);
INSERT INTO "word" VALUES(0,'');
INSERT INTO "word" VALUES(1,'warc/a.warc.gz');
CREATE INDEX host_pending ON host (name) WHERE queued > 0;
CREATE INDEX url_line ON url (host, front, depth, uid) WHERE state = 1;
CREATE INDEX url_due ON url (state, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX visit_refused ON visit (host, protocol, authority_digest) WHERE protocol > 0;
CREATE VIEW urls AS SELECT
    CASE WHEN u.tail LIKE '/%' THEN 'https://' || h.name || u.tail WHEN u.tail LIKE 'h/%' THEN 'http://' || h.name || substr(u.tail, 2)
        ELSE u.tail END AS url,
    lower(hex(u.uid)) AS url_id, h.name AS host, d.name AS domain, k.name AS kind, s.name AS state, r.text AS reason, u.depth, u.hops,
    w.url AS via, u.front, u.claim / 1000.0 AS priority, u.attempts, u.due_at AS next_at, v.http_status, c.text AS content_type, v.fetched_at,
    f.text AS warc_file, v.offset AS warc_offset, v.length AS warc_length, lower(hex(v.content_sha256)) AS content_sha256,
    v.near_original, v.target, q.text AS rule, v.rule_line, a.text AS authority_digest, p.text AS protocol
    FROM url u JOIN host h ON h.id = u.host JOIN domain d ON d.id = h.domain JOIN kind_name k ON k.code = u.kind
    JOIN state_name s ON s.code = u.state JOIN word r ON r.id = u.reason JOIN via w ON w.id = u.via
    LEFT JOIN visit v ON v.host = u.host AND v.uid = u.uid LEFT JOIN word c ON c.id = v.content_type LEFT JOIN word f ON f.id = v.file
    LEFT JOIN word q ON q.id = v.rule LEFT JOIN word a ON a.id = v.authority_digest LEFT JOIN word p ON p.id = v.protocol;
CREATE VIEW hosts AS SELECT h.name AS host, d.name AS domain, h.ips, h.state, h.reason, h.pace_s AS pace, h.due_set + h.due_wait AS next_contact,
    h.crawl_delay_s AS crawl_delay, h.strikes, h.pages, h.queued, d.pages AS domain_pages,
    (SELECT a.digest FROM authority a WHERE a.host = h.id AND a.kind = 2 ORDER BY a.authority DESC LIMIT 1) AS robots_digest,
    (SELECT a.read_at FROM authority a WHERE a.host = h.id AND a.kind = 2 ORDER BY a.authority DESC LIMIT 1) AS robots_read_at
    FROM host h JOIN domain d ON d.id = h.domain;
COMMIT;
