BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('0020');
CREATE TABLE bindings (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	language VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	policy_name VARCHAR NOT NULL, 
	spec_digest VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "bindings" VALUES(1,X'1E23BA978841EE8834D8D6DDECD21656','ValidatingAdmissionPolicy','replicas-binding','replicas','replicas','{"language":"ValidatingAdmissionPolicy","name":"replicas-binding","policy_name":"replicas","param_ref":null,"match":null,"actions":["Deny","Audit"],"manifest":{},"digest":"replicas","source":"cluster","assumed":false}');
INSERT INTO "bindings" VALUES(2,X'96C3D1DDB790AA31126978BD8215B927','ValidatingAdmissionPolicy','labels-binding','labels','labels','{"language":"ValidatingAdmissionPolicy","name":"labels-binding","policy_name":"labels","param_ref":null,"match":null,"actions":["Deny","Audit"],"manifest":{},"digest":"labels","source":"cluster","assumed":false}');
CREATE TABLE causes (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	kind VARCHAR NOT NULL, 
	also VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "causes" VALUES(1,X'A963D505286C4931904FD1CC64F76AC4','coverage','');
INSERT INTO "causes" VALUES(2,X'22008CA5A6D2DC3A0EDAA0191F7B0E84','objectDeleted','');
INSERT INTO "causes" VALUES(3,X'109593B2260A142CFED9AB5DA1B4D875','objectCreated','');
CREATE TABLE check_names (
	cluster INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	since INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	PRIMARY KEY (cluster, digest, since), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "check_names" VALUES(1,X'0A911A7836D4A24D3F2CD808BE2F7A0F',1,'c-c03064a39c11');
INSERT INTO "check_names" VALUES(1,X'17B31479A475465CE9577B1C7CBE51B0',1,'c-acc44b89c870');
INSERT INTO "check_names" VALUES(1,X'2D9D18117001158050064F56B9F66D2D',1,'c-caf649ea89d5');
INSERT INTO "check_names" VALUES(1,X'1C18E0B627CC6C794E95B39F7F404B94',1,'c-4f0a669c5173');
CREATE TABLE checks (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	policy VARCHAR NOT NULL, 
	binding VARCHAR NOT NULL, 
	param_namespace VARCHAR NOT NULL, 
	param_name VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	"index" INTEGER NOT NULL, 
	expression VARCHAR NOT NULL, 
	language VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "checks" VALUES(1,X'4E2B4D616AD7A4040B28AF3CCD73B7BD','replicas','replicas-binding','','','validation',0,'object.spec.replicas <= 5','ValidatingAdmissionPolicy');
INSERT INTO "checks" VALUES(2,X'E46DA19FA292FA03D49A3030E155AEA9','labels','labels-binding','','','validation',0,'object.spec.replicas <= 5','ValidatingAdmissionPolicy');
CREATE TABLE clusters (
	id INTEGER NOT NULL, 
	identity VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	observed VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (identity)
);
INSERT INTO "clusters" VALUES(1,'uid:6d1c','prod','uid:6d1c');
CREATE TABLE coverage (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	objects INTEGER NOT NULL, 
	evaluated INTEGER NOT NULL, 
	pages INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	resource_version VARCHAR NOT NULL, 
	note VARCHAR NOT NULL, 
	seconds FLOAT DEFAULT 0 NOT NULL, 
	sets INTEGER, 
	page_digests BLOB, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(sets) REFERENCES set_lists (id)
);
INSERT INTO "coverage" VALUES(1,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,1,X'');
INSERT INTO "coverage" VALUES(1,1,'v1','Pod','listed',9,0,1,0,'','',0.0,NULL,X'');
INSERT INTO "coverage" VALUES(2,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,2,X'');
INSERT INTO "coverage" VALUES(2,1,'v1','Pod','listed',9,0,1,0,'','',0.0,NULL,X'');
INSERT INTO "coverage" VALUES(3,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,2,X'');
INSERT INTO "coverage" VALUES(3,1,'v1','Pod','listed',9,0,1,0,'','',0.0,3,X'');
CREATE TABLE daily (
	day INTEGER NOT NULL, 
	"key" INTEGER NOT NULL, 
	count INTEGER NOT NULL, 
	PRIMARY KEY (day, "key"), 
	FOREIGN KEY(day) REFERENCES days (number), 
	FOREIGN KEY("key") REFERENCES daily_keys (id)
)
 WITHOUT ROWID

;
INSERT INTO "daily" VALUES(1,1,1);
INSERT INTO "daily" VALUES(1,2,2);
INSERT INTO "daily" VALUES(2,1,1);
INSERT INTO "daily" VALUES(2,2,1);
INSERT INTO "daily" VALUES(3,1,1);
INSERT INTO "daily" VALUES(3,2,1);
INSERT INTO "daily" VALUES(3,3,1);
CREATE TABLE daily_keys (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	language VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	namespace VARCHAR NOT NULL, 
	outcome VARCHAR NOT NULL, 
	requester BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "daily_keys" VALUES(1,X'36FD324452C2991EC0281674477B959F','ValidatingAdmissionPolicy','replicas','bank','violated',0);
INSERT INTO "daily_keys" VALUES(2,X'C21A25A6FDD9F2EC8BD1F25C913C34EE','ValidatingAdmissionPolicy','replicas','shop','violated',0);
INSERT INTO "daily_keys" VALUES(3,X'26A8C4E61A033581EB80A0A85C11E100','ValidatingAdmissionPolicy','labels','shop','violated',0);
CREATE TABLE days (
	number INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	day VARCHAR NOT NULL, 
	scan INTEGER NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (cluster, day), 
	FOREIGN KEY(cluster) REFERENCES clusters (id), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
INSERT INTO "days" VALUES(1,1,'2026-03-02',1);
INSERT INTO "days" VALUES(2,1,'2026-03-03',2);
INSERT INTO "days" VALUES(3,1,'2026-03-04',3);
CREATE TABLE evidence (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	reasons VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE excerpts (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	text VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE findings (
	id INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	fingerprint BLOB NOT NULL, 
	since INTEGER NOT NULL, 
	until INTEGER NOT NULL, 
	superseded INTEGER, 
	first INTEGER NOT NULL, 
	event VARCHAR NOT NULL, 
	reopened INTEGER NOT NULL, 
	last_seen INTEGER, 
	opened INTEGER, 
	resolution VARCHAR, 
	cause INTEGER, 
	end_cause INTEGER, 
	continues BLOB, 
	problem_first INTEGER, 
	problem_opened INTEGER, 
	"check" INTEGER NOT NULL, 
	kind INTEGER NOT NULL, 
	object INTEGER NOT NULL, 
	resource_version VARCHAR NOT NULL, 
	verdict INTEGER NOT NULL, 
	evidence INTEGER, 
	excerpt INTEGER, 
	problem BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "findings" VALUES(1,1,X'C099E4A9DDECF265D77F7E2DB230C4481A1ED84A004DBB170DCE8C1960E9FADA',1,2147483647,NULL,1,'new',0,NULL,1,NULL,1,NULL,NULL,1,1,1,1,1,'1',1,NULL,NULL,48041832914067);
INSERT INTO "findings" VALUES(2,1,X'0CDE5F21B972F9B6656E3CD677E810F3F98141891D67EA25AEB300B383C465B0',1,2,NULL,1,'new',0,1,1,'objectGone',1,2,NULL,1,1,1,1,3,'1',1,NULL,NULL,24754215093335);
INSERT INTO "findings" VALUES(3,1,X'839CA65AFF2382A6416552DBE444D1C50628D3846F52F23F1412A88CACAC8F0E',1,2147483647,NULL,1,'new',0,NULL,1,NULL,1,NULL,NULL,1,1,1,1,2,'1',1,NULL,NULL,207736024421863);
INSERT INTO "findings" VALUES(4,1,X'73D54E5FEB709F7211608FFA075912B3748B3E9CE239F889473637EDC129C316',3,2147483647,NULL,3,'new',0,NULL,3,NULL,3,NULL,NULL,3,3,2,2,4,'1',1,NULL,NULL,89767156987372);
CREATE TABLE fixes (
	cluster INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	language VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	opened INTEGER NOT NULL, 
	problems INTEGER NOT NULL, 
	PRIMARY KEY (cluster, revision, language, policy, opened), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
CREATE TABLE gaps (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	"where" VARCHAR NOT NULL, 
	why VARCHAR NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
INSERT INTO "gaps" VALUES(1,0,'discovery','secrets','forbidden');
INSERT INTO "gaps" VALUES(2,0,'discovery','secrets','forbidden');
CREATE TABLE health (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	binding VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	language VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE kept (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	labels VARCHAR NOT NULL, 
	annotations VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE kinds (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "kinds" VALUES(1,X'DD9FB15EFE8784ED9446A1565F92BFF4','apps/v1','Deployment');
INSERT INTO "kinds" VALUES(2,X'78ABFE2F5BF65EDB388446A9E66BB00F','v1','Pod');
CREATE TABLE kube_assay (
	note VARCHAR NOT NULL
);
CREATE TABLE last_ids (
	name VARCHAR NOT NULL, 
	id INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "last_ids" VALUES('clusters',1);
INSERT INTO "last_ids" VALUES('scans',3);
INSERT INTO "last_ids" VALUES('policies',2);
INSERT INTO "last_ids" VALUES('bindings',2);
INSERT INTO "last_ids" VALUES('causes',3);
INSERT INTO "last_ids" VALUES('kinds',2);
INSERT INTO "last_ids" VALUES('objects',4);
INSERT INTO "last_ids" VALUES('checks',2);
INSERT INTO "last_ids" VALUES('verdicts',1);
INSERT INTO "last_ids" VALUES('findings',4);
INSERT INTO "last_ids" VALUES('object_sets',3);
INSERT INTO "last_ids" VALUES('set_lists',3);
INSERT INTO "last_ids" VALUES('days',3);
INSERT INTO "last_ids" VALUES('daily_keys',3);
CREATE TABLE merged_pages (
	cluster INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	findings BLOB NOT NULL, 
	PRIMARY KEY (cluster, digest), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "merged_pages" VALUES(1,X'65C42DCAB3F75F380241B07032766345',X'789C8B8E36D4318CD589360692B10018130373');
INSERT INTO "merged_pages" VALUES(1,X'3A7A899046E72C3D912B1DF0B19E784B',X'789C8B8E36D1318C8D050008040202');
CREATE TABLE object_sets (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	count INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "object_sets" VALUES(1,X'4D7B3EF7300ACF70C892D8327DB8272F54434ADBC61A4E130A563CB59A0D0F47',3,X'789CE30300000F000F');
INSERT INTO "object_sets" VALUES(2,X'67586E98FAD27DA0B9968BC039A1EF34C939B9B8E523A8BEF89D478608C5ECF6',2,X'789C63030000070007');
INSERT INTO "object_sets" VALUES(3,X'C555EAB45D08845AE9F10D452A99BFCB06F74A50B988FE7E48DD323789B88EE3',1,X'789C13000000110011');
CREATE TABLE objects (
	id INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	kind INTEGER NOT NULL, 
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(cluster) REFERENCES clusters (id), 
	FOREIGN KEY(kind) REFERENCES kinds (id)
);
INSERT INTO "objects" VALUES(1,1,1,'bank','c','uid-bank-c');
INSERT INTO "objects" VALUES(2,1,1,'shop','a','uid-shop-a');
INSERT INTO "objects" VALUES(3,1,1,'shop','b','uid-shop-b');
INSERT INTO "objects" VALUES(4,1,2,'shop','d','uid-shop-d');
CREATE TABLE outside (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	why VARCHAR NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE policies (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	language VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	spec_digest VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "policies" VALUES(1,X'3552EA711038E57563938455FF45D2F8','ValidatingAdmissionPolicy','replicas','digest of replicas','{"language":"ValidatingAdmissionPolicy","name":"replicas","match":null,"param_kind":null,"match_conditions":[],"variables":[],"validations":[],"audit_annotations":[],"failure_policy":"Fail","manifest":{"metadata":{"name":"replicas"},"spec":{"validations":[{"expression":"object.spec.replicas <= 5"}]}},"digest":"digest of replicas","source":"cluster","mutations":[],"reinvocation_policy":"Never"}');
INSERT INTO "policies" VALUES(2,X'7B67B97E2156A5D2795CCE2A07776C60','ValidatingAdmissionPolicy','labels','digest of labels','{"language":"ValidatingAdmissionPolicy","name":"labels","match":null,"param_kind":null,"match_conditions":[],"variables":[],"validations":[],"audit_annotations":[],"failure_policy":"Fail","manifest":{"metadata":{"name":"labels"},"spec":{"validations":[{"expression":"object.spec.replicas <= 5"}]}},"digest":"digest of labels","source":"cluster","mutations":[],"reinvocation_policy":"Never"}');
CREATE TABLE population (
	object INTEGER NOT NULL, 
	since INTEGER NOT NULL, 
	until INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	kind INTEGER NOT NULL, 
	workload INTEGER NOT NULL, 
	kept INTEGER NOT NULL, 
	PRIMARY KEY (object, since), 
	FOREIGN KEY(object) REFERENCES objects (id), 
	FOREIGN KEY(cluster) REFERENCES clusters (id), 
	FOREIGN KEY(kind) REFERENCES kinds (id)
);
INSERT INTO "population" VALUES(1,1,2147483647,1,1,0,0);
INSERT INTO "population" VALUES(2,1,2147483647,1,1,0,0);
INSERT INTO "population" VALUES(3,1,2,1,1,0,0);
INSERT INTO "population" VALUES(4,3,2147483647,1,2,0,0);
CREATE TABLE rules (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	type VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	content_digest VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	masked BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE runs (
	number INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	exit_code INTEGER, 
	reason VARCHAR NOT NULL, 
	scan INTEGER, 
	host VARCHAR NOT NULL, 
	process INTEGER DEFAULT 0 NOT NULL, 
	process_started VARCHAR DEFAULT '' NOT NULL, 
	scan_id VARCHAR DEFAULT '' NOT NULL, 
	command_line VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (number), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE scan_bindings (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	binding INTEGER NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(binding) REFERENCES bindings (id)
);
INSERT INTO "scan_bindings" VALUES(1,0,1);
INSERT INTO "scan_bindings" VALUES(1,1,2);
CREATE TABLE scan_policies (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	policy INTEGER NOT NULL, 
	reading VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(policy) REFERENCES policies (id)
);
INSERT INTO "scan_policies" VALUES(1,0,1,'{"classes":[],"checks":[],"reason":""}');
INSERT INTO "scan_policies" VALUES(1,1,2,'{"classes":[],"checks":[],"reason":""}');
CREATE TABLE scan_rules (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	rule INTEGER NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(rule) REFERENCES rules (id)
);
CREATE TABLE scans (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	cluster INTEGER NOT NULL, 
	cluster_name VARCHAR NOT NULL, 
	cluster_uid VARCHAR NOT NULL, 
	server_version VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	state VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	tool_version VARCHAR NOT NULL, 
	base INTEGER NOT NULL, 
	revision INTEGER, 
	findings INTEGER NOT NULL, 
	new INTEGER NOT NULL, 
	reopened INTEGER NOT NULL, 
	resolved INTEGER NOT NULL, 
	unchecked INTEGER NOT NULL, 
	host VARCHAR NOT NULL, 
	process INTEGER NOT NULL, 
	process_started VARCHAR NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	requester VARCHAR DEFAULT '' NOT NULL, 
	opinion VARCHAR DEFAULT '' NOT NULL, 
	policies_of INTEGER DEFAULT 0 NOT NULL, 
	bindings_of INTEGER DEFAULT 0 NOT NULL, 
	health_of INTEGER DEFAULT 0 NOT NULL, 
	outside_of INTEGER DEFAULT 0 NOT NULL, 
	rules_of INTEGER DEFAULT 0 NOT NULL, 
	uncovered_of INTEGER DEFAULT 0 NOT NULL, 
	matched VARCHAR DEFAULT '' NOT NULL, 
	policy_set_digest VARCHAR DEFAULT '' NOT NULL, 
	description_digest VARCHAR DEFAULT '' NOT NULL, 
	method VARCHAR DEFAULT '' NOT NULL, 
	notes VARCHAR DEFAULT '' NOT NULL, 
	object_counts VARCHAR DEFAULT '' NOT NULL, 
	silence INTEGER DEFAULT 900 NOT NULL, 
	pruned_at DATETIME, 
	PRIMARY KEY (number), 
	UNIQUE (cluster, revision), 
	UNIQUE (id), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "scans" VALUES(1,'scan-1',1,'prod','6d1c','v1.36.0','cluster','2026-03-02 06:00:00.000000','2026-03-02 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',0,1,3,3,0,0,0,'vm',21672,'7029922','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',0,0,0,0,0,0,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0020","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false}','','[]',900,NULL);
INSERT INTO "scans" VALUES(2,'scan-2',1,'prod','6d1c','v1.36.0','cluster','2026-03-03 06:00:00.000000','2026-03-03 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',1,2,2,0,0,1,0,'vm',21672,'7029922','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,1,1,1,1,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0020","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false}','','[]',900,NULL);
INSERT INTO "scans" VALUES(3,'scan-3',1,'prod','6d1c','v1.36.0','cluster','2026-03-04 06:00:00.000000','2026-03-04 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',2,3,3,1,0,0,0,'vm',21672,'7029922','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,1,1,1,1,'[18,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0020","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false}','','[]',900,NULL);
CREATE TABLE set_lists (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "set_lists" VALUES(1,X'15C46548E1B96E8DBC10068C5870D6F0B69F248D559731E6F6837809F84BD691',X'789C8B36D4898E066120A1A4140B060038CE05AC');
INSERT INTO "set_lists" VALUES(2,X'56809790F867572F92625369B8E4FAA3C6BA750A3D788BC608F4E19EDA005BD8',X'789C8B36D2898E06E168431D25A55830000038F005AE');
INSERT INTO "set_lists" VALUES(3,X'23B750E43ED6053AE058F2C19AFC5C5457280D4DE43B51516687C7CA23FE69E9',X'789C8B36D6898E06E168231D25A558300000391C05B1');
CREATE TABLE staged_pages (
	id INTEGER NOT NULL, 
	scan INTEGER NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	content BLOB, 
	objects BLOB NOT NULL, 
	sets BLOB, 
	PRIMARY KEY (id), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE tallies (
	scan INTEGER NOT NULL, 
	"check" INTEGER NOT NULL, 
	kind INTEGER NOT NULL, 
	namespace VARCHAR NOT NULL, 
	outcome VARCHAR NOT NULL, 
	count INTEGER NOT NULL, 
	requester BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (scan, "check", kind, namespace, outcome), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY("check") REFERENCES checks (id), 
	FOREIGN KEY(kind) REFERENCES kinds (id)
);
INSERT INTO "tallies" VALUES(1,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(1,1,1,'shop','violated',2,0);
INSERT INTO "tallies" VALUES(2,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(2,1,1,'shop','violated',1,0);
INSERT INTO "tallies" VALUES(3,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(3,1,1,'shop','violated',1,0);
INSERT INTO "tallies" VALUES(3,2,2,'shop','violated',1,0);
CREATE TABLE unchecked (
	scan INTEGER NOT NULL, 
	findings BLOB NOT NULL, 
	PRIMARY KEY (scan), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE uncovered (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE verdicts (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	outcome VARCHAR NOT NULL, 
	message VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	code INTEGER NOT NULL, 
	would_deny BOOLEAN NOT NULL, 
	always BOOLEAN NOT NULL, 
	operation VARCHAR NOT NULL, 
	actions VARCHAR NOT NULL, 
	denies BOOLEAN NOT NULL, 
	excepted_by VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "verdicts" VALUES(1,X'0B8BD442A08DE0D3818F9B88A028DDFF','violated','too many replicas','Invalid',422,0,0,'CREATE','Deny,Audit',1,'');
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	derived BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE UNIQUE INDEX findings_last_word ON findings (fingerprint, cluster) WHERE superseded IS NULL;
CREATE INDEX findings_continues ON findings (continues) WHERE continues IS NOT NULL;
CREATE INDEX findings_until ON findings (cluster, until);
CREATE INDEX population_in_force ON population (cluster, kind) WHERE until = 2147483647;
CREATE INDEX staged_pages_scan ON staged_pages (scan);
CREATE VIEW v_findings_open AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, substr(lower(hex(findings.fingerprint)), 1, 12) AS finding, CASE WHEN (findings.problem IS NOT NULL) THEN ('p-' || printf('%012x', findings.problem)) ELSE substr(lower(hex(findings.fingerprint)), 1, 12) END AS problem, CASE WHEN (findings.since = newest.revision AND findings.event IN ('new', 'reopened')) THEN findings.event ELSE 'open' END AS status, (substr(first_scan.finished_at, 1, 10) || 'T' || substr(first_scan.finished_at, 12, 8) || 'Z') AS first_seen, (substr(opening_scan.finished_at, 1, 10) || 'T' || substr(opening_scan.finished_at, 12, 8) || 'Z') AS opened_at, checks.language AS language, checks.policy AS policy, checks.binding AS binding, checks.param_namespace AS param_namespace, checks.param_name AS param_name, checks.kind AS check_kind, checks."index" AS check_index, checks.expression AS expression, verdicts.outcome AS outcome, CASE WHEN (verdicts.outcome = 'wouldChange') THEN NULL ELSE CASE WHEN (replace(verdicts.message, char(3), '') != verdicts.message) THEN replace(replace(replace(verdicts.message, char(3) || char(1), char(1)), char(3) || char(2), char(2)), char(3) || char(3), char(3)) ELSE replace(replace(verdicts.message, char(1), objects.name), char(2), objects.namespace) END END AS message, verdicts.operation AS operation, CASE WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 1) THEN 'Audit' WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 2) THEN 'Warn' WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 3) THEN 'Deny' ELSE '' END AS action, verdicts.actions AS actions, CASE WHEN verdicts.denies THEN 1 ELSE 0 END AS denies, verdicts.excepted_by AS excepted_by, kinds.api_version AS api_version, kinds.kind AS kind, objects.namespace AS namespace, objects.name AS name, objects.uid AS uid, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.api_version, kinds.api_version) END AS workload_api_version, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.kind, kinds.kind) END AS workload_kind, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.namespace, objects.namespace) END AS workload_namespace, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.name, objects.name) END AS workload_name 
FROM findings JOIN clusters ON clusters.id = findings.cluster JOIN checks ON checks.id = findings."check" JOIN kinds ON kinds.id = findings.kind JOIN objects ON objects.id = findings.object JOIN verdicts ON verdicts.id = findings.verdict JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = findings.cluster LEFT OUTER JOIN population ON population.object = findings.object AND population.since = (SELECT max(later.since) AS max_1 
FROM population AS later 
WHERE later.object = findings.object AND later.since < findings.until) LEFT OUTER JOIN workloads ON workloads.id = population.workload JOIN scans AS first_scan ON first_scan.cluster = findings.cluster AND first_scan.revision = findings.first LEFT OUTER JOIN scans AS opening_scan ON opening_scan.cluster = findings.cluster AND opening_scan.revision = findings.opened 
WHERE findings.until = 2147483647;
CREATE VIEW v_problems AS SELECT problems.cluster, problems.cluster_id, problems.problem AS problem, CASE WHEN (problems.until != 2147483647) THEN 'resolved' WHEN (problems.opened = problems.newest) THEN CASE WHEN (problems.first = problems.newest) THEN 'new' ELSE 'reopened' END ELSE 'open' END AS status, (substr(first_scan.finished_at, 1, 10) || 'T' || substr(first_scan.finished_at, 12, 8) || 'Z') AS first_seen, (substr(opening_scan.finished_at, 1, 10) || 'T' || substr(opening_scan.finished_at, 12, 8) || 'Z') AS opened_at, (substr(last_scan.finished_at, 1, 10) || 'T' || substr(last_scan.finished_at, 12, 8) || 'Z') AS resolved_at, problems.resolution AS resolution, CASE WHEN (problems.until = 2147483647) THEN problems.findings ELSE 0 END AS findings, CASE WHEN (problems.until = 2147483647) THEN problems.excepted ELSE 0 END AS excepted, problems.action AS action, problems.denies AS denies, problems.language AS language, problems.policy AS policy, problems.check_kind AS check_kind, problems.check_index AS check_index, problems.expression AS expression, problems.workload_api_version AS workload_api_version, problems.workload_kind AS workload_kind, problems.workload_namespace AS workload_namespace, problems.workload_name AS workload_name 
FROM (SELECT clusters.name AS cluster, clusters.id AS cluster_id, max(newest.revision) AS newest, min(CASE WHEN (latest.problem IS NOT NULL) THEN ('p-' || printf('%012x', latest.problem)) ELSE substr(lower(hex(latest.fingerprint)), 1, 12) END) AS problem, max(latest.until) AS until, min(latest.first) AS first, min(latest.opened) AS opened, count(*) AS findings, sum(CASE WHEN (verdicts.excepted_by != '') THEN 1 ELSE 0 END) AS excepted, CASE min(CASE latest.resolution WHEN 'rulesChanged' THEN 0 WHEN 'unbound' THEN 1 WHEN 'notMatched' THEN 2 WHEN 'objectGone' THEN 3 WHEN 'fixed' THEN 4 END) WHEN 0 THEN 'rulesChanged' WHEN 1 THEN 'unbound' WHEN 2 THEN 'notMatched' WHEN 3 THEN 'objectGone' WHEN 4 THEN 'fixed' END AS resolution, min(checks.language) AS language, min(checks.policy) AS policy, min(checks.kind) AS check_kind, min(checks."index") AS check_index, min(checks.expression) AS expression, CASE WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 1) THEN 'Audit' WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 2) THEN 'Warn' WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 3) THEN 'Deny' ELSE '' END AS action, max(CASE WHEN verdicts.denies THEN 1 ELSE 0 END) AS denies, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.api_version, kinds.api_version) END), min(kinds.api_version)) AS workload_api_version, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.kind, kinds.kind) END), min(kinds.kind)) AS workload_kind, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.namespace, objects.namespace) END), min(objects.namespace)) AS workload_namespace, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.name, objects.name) END), min(objects.name)) AS workload_name 
FROM (SELECT coalesce(findings.problem, -findings.id) AS number, findings.cluster AS cluster, findings.fingerprint AS fingerprint, findings.until AS until, findings."check" AS "check", findings.kind AS kind, findings.object AS object, findings.verdict AS verdict, findings.problem AS problem, findings.resolution AS resolution, max(findings.until) OVER (PARTITION BY findings.cluster, coalesce(findings.problem, -findings.id)) AS last, min(coalesce(findings.problem_first, findings.first)) OVER (PARTITION BY findings.cluster, coalesce(findings.problem, -findings.id)) AS first, coalesce(findings.problem_opened, findings.opened, findings.since) AS opened 
FROM findings 
WHERE findings.superseded IS NULL) AS latest JOIN clusters ON clusters.id = latest.cluster JOIN checks ON checks.id = latest."check" JOIN kinds ON kinds.id = latest.kind JOIN objects ON objects.id = latest.object JOIN verdicts ON verdicts.id = latest.verdict JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = latest.cluster LEFT OUTER JOIN population ON population.object = latest.object AND population.since = (SELECT max(later.since) AS max_1 
FROM population AS later 
WHERE later.object = latest.object AND later.since < latest.until) LEFT OUTER JOIN workloads ON workloads.id = population.workload 
WHERE latest.until = latest.last GROUP BY clusters.id, clusters.name, latest.number) AS problems JOIN scans AS first_scan ON first_scan.cluster = problems.cluster_id AND first_scan.revision = problems.first JOIN scans AS opening_scan ON opening_scan.cluster = problems.cluster_id AND opening_scan.revision = problems.opened LEFT OUTER JOIN scans AS last_scan ON last_scan.cluster = problems.cluster_id AND last_scan.revision = problems.until;
CREATE VIEW v_scans AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, scans.id AS scan, scans.state AS state, (substr(scans.started_at, 1, 10) || 'T' || substr(scans.started_at, 12, 8) || 'Z') AS started_at, (substr(scans.finished_at, 1, 10) || 'T' || substr(scans.finished_at, 12, 8) || 'Z') AS finished_at, CASE WHEN (scans.revision = newest.revision) THEN 1 ELSE 0 END AS newest, scans.findings AS findings, scans.new AS new, scans.reopened AS reopened, scans.resolved AS resolved, scans.unchecked AS unchecked, scans.source AS source, scans.server_version AS server_version, scans.tool_version AS tool_version, CASE WHEN (scans.pruned_at IS NOT NULL) THEN 1 ELSE 0 END AS pruned, (substr(scans.pruned_at, 1, 10) || 'T' || substr(scans.pruned_at, 12, 8) || 'Z') AS pruned_at 
FROM scans JOIN clusters ON clusters.id = scans.cluster JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = scans.cluster;
CREATE VIEW v_coverage AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, scans.id AS scan, (substr(scans.finished_at, 1, 10) || 'T' || substr(scans.finished_at, 12, 8) || 'Z') AS finished_at, CASE WHEN (scans.revision = newest.revision) THEN 1 ELSE 0 END AS newest, coverage.api_version AS api_version, coverage.kind AS kind, coverage.state AS state, coverage.objects AS objects, coverage.evaluated AS evaluated, coverage.pages AS pages, coverage.bytes AS bytes, coverage.seconds AS seconds, coverage.note AS note 
FROM scans JOIN clusters ON clusters.id = scans.cluster JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = scans.cluster JOIN coverage ON coverage.scan = scans.number 
WHERE scans.pruned_at IS NULL;
CREATE VIEW v_policy_health AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, scans.id AS scan, (substr(scans.finished_at, 1, 10) || 'T' || substr(scans.finished_at, 12, 8) || 'Z') AS finished_at, CASE WHEN (scans.revision = newest.revision) THEN 1 ELSE 0 END AS newest, health.kind AS kind, health.language AS language, health.policy AS policy, health.binding AS binding, health.detail AS detail 
FROM scans JOIN clusters ON clusters.id = scans.cluster JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = scans.cluster JOIN health ON health.scan = CASE WHEN (scans.health_of = 0) THEN scans.number ELSE scans.health_of END 
WHERE scans.pruned_at IS NULL AND scans.finished_at IS NOT NULL;
CREATE VIEW v_daily AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, days.day AS day, scans.id AS scan, daily_keys.language AS language, daily_keys.policy AS policy, daily_keys.namespace AS namespace, daily_keys.outcome AS outcome, CASE WHEN daily_keys.requester THEN 1 ELSE 0 END AS depends_on_requester, daily.count AS count 
FROM days JOIN clusters ON clusters.id = days.cluster JOIN scans ON scans.number = days.scan JOIN daily ON daily.day = days.number JOIN daily_keys ON daily_keys.id = daily."key";
COMMIT;
