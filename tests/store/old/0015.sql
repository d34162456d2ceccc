BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('0015');
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
	"check" INTEGER NOT NULL, 
	kind INTEGER NOT NULL, 
	object INTEGER NOT NULL, 
	resource_version VARCHAR NOT NULL, 
	verdict INTEGER NOT NULL, 
	evidence INTEGER, 
	excerpt INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "findings" VALUES(1,1,X'C099E4A9DDECF265D77F7E2DB230C4481A1ED84A004DBB170DCE8C1960E9FADA',1,2147483647,NULL,1,'new',0,NULL,1,1,1,'1',1,NULL,NULL);
INSERT INTO "findings" VALUES(2,1,X'0CDE5F21B972F9B6656E3CD677E810F3F98141891D67EA25AEB300B383C465B0',1,2,NULL,1,'new',0,1,1,1,3,'1',1,NULL,NULL);
INSERT INTO "findings" VALUES(3,1,X'839CA65AFF2382A6416552DBE444D1C50628D3846F52F23F1412A88CACAC8F0E',1,2147483647,NULL,1,'new',0,NULL,1,1,2,'1',1,NULL,NULL);
INSERT INTO "findings" VALUES(4,1,X'73D54E5FEB709F7211608FFA075912B3748B3E9CE239F889473637EDC129C316',3,2147483647,NULL,3,'new',0,NULL,2,2,4,'1',1,NULL,NULL);
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
INSERT INTO "last_ids" VALUES('kinds',2);
INSERT INTO "last_ids" VALUES('objects',4);
INSERT INTO "last_ids" VALUES('checks',2);
INSERT INTO "last_ids" VALUES('verdicts',1);
INSERT INTO "last_ids" VALUES('findings',4);
INSERT INTO "last_ids" VALUES('object_sets',3);
INSERT INTO "last_ids" VALUES('set_lists',3);
CREATE TABLE merged_pages (
	cluster INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	findings BLOB NOT NULL, 
	PRIMARY KEY (cluster, digest), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "merged_pages" VALUES(1,X'EDC27C35CBAC7F693BF96981B3E37C65',X'789C8B8E36D4318CD589360692B10018130373');
INSERT INTO "merged_pages" VALUES(1,X'0399F324EAB69E5E285AB9C6D2777AB9',X'789C8B8E36D1318C8D050008040202');
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
	silence INTEGER DEFAULT 900 NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (cluster, revision), 
	UNIQUE (id), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "scans" VALUES(1,'scan-1',1,'prod','6d1c','v1.36.0','cluster','2026-03-02 06:00:00.000000','2026-03-02 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',0,1,3,3,0,0,0,'vm',21910,'7031161','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',0,0,0,0,0,0,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0015"}','',900);
INSERT INTO "scans" VALUES(2,'scan-2',1,'prod','6d1c','v1.36.0','cluster','2026-03-03 06:00:00.000000','2026-03-03 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',1,2,2,0,0,1,0,'vm',21910,'7031161','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,1,1,1,1,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0015"}','',900);
INSERT INTO "scans" VALUES(3,'scan-3',1,'prod','6d1c','v1.36.0','cluster','2026-03-04 06:00:00.000000','2026-03-04 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',2,3,3,1,0,0,0,'vm',21910,'7031161','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,1,1,1,1,'[18,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0015"}','',900);
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
CREATE INDEX findings_until ON findings (cluster, until);
CREATE INDEX population_in_force ON population (cluster, kind) WHERE until = 2147483647;
CREATE INDEX staged_pages_scan ON staged_pages (scan);
COMMIT;
