BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('0032');
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
INSERT INTO "causes" VALUES(1,X'BF5863BD6A932C4B8110287ABE778E63','firstScan','');
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
CREATE TABLE closing_sums (
	part VARCHAR NOT NULL, 
	block INTEGER NOT NULL, 
	scan INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	sum BLOB NOT NULL, 
	PRIMARY KEY (part, block, scan), 
	FOREIGN KEY(scan) REFERENCES scans (number)
)
 WITHOUT ROWID

;
INSERT INTO "closing_sums" VALUES('check_names',0,1,4,X'CB3BFC98EEEB911519B61E9E7B63584620A8DE4E9B09536CDC841E5678AE558B');
INSERT INTO "closing_sums" VALUES('coverage',0,2,1,X'59F5CCCC4C5985485D9FBA6E5815AD649C338E1E7D8F8E617FDFFDA664D82360');
INSERT INTO "closing_sums" VALUES('coverage',0,4,1,X'59F5CCCC4C5985485D9FBA6E5815AD649C338E1E7D8F8E617FDFFDA664D82360');
INSERT INTO "closing_sums" VALUES('coverage',0,5,1,X'59F5CCCC4C5985485D9FBA6E5815AD649C338E1E7D8F8E617FDFFDA664D82360');
INSERT INTO "closing_sums" VALUES('coverage sets',0,2,1,X'325B7503F94E95E7A1B93F495D6AAB019FD2B4EDD53793E178F094B2D1B2A4E7');
INSERT INTO "closing_sums" VALUES('coverage sets',0,4,1,X'FAC1A7549147A09D61EBF6AEDB2F1C6BEBE4C40B2E86245A15E12DA7CB34B0FD');
INSERT INTO "closing_sums" VALUES('coverage sets',0,5,1,X'44A4564765F7E2B1FA9C03BD95174A1B6D540A779911DC23E3EE6AC01AF9BF60');
INSERT INTO "closing_sums" VALUES('daily',0,3,2,X'033C64F0DEADAF8CF7FEB184CC2417744DBF5995882961E11EF98F7660D7BECE');
INSERT INTO "closing_sums" VALUES('daily',0,4,2,X'C4451A997434DFB7D65591686A40290C05B6EF3D02DA5E2E60B02A668F645411');
INSERT INTO "closing_sums" VALUES('daily',0,5,2,X'7E7D85F3F2DF916D39B2EA7CEB1C436164A7A2E526456F968AFA9D1ED6088519');
INSERT INTO "closing_sums" VALUES('findings',0,1,4,X'01952FA43436DD35118B420CBFD17C195A2E5C6EF55BCCA62C574B7087F4E26A');
INSERT INTO "closing_sums" VALUES('findings',0,5,1,X'8FFE63D4B87E4969FFC2E2D0B282CE3360507CB917EC2BD167A1F72955A8E76D');
INSERT INTO "closing_sums" VALUES('findings ended',0,3,1,X'8735324B2D40EC28F8D048AA85908ACA808AC060CA7472375A707AA72B47920D');
INSERT INTO "closing_sums" VALUES('gaps',0,1,1,X'04CE67AEFE56E4018FF3FBE628C91CAD0453306E50F822C89AFC7551DE289466');
INSERT INTO "closing_sums" VALUES('gaps',0,2,1,X'10550967ED53AFE4461F477B978CE0F2500DA6C1A573FE460D608758D542B030');
INSERT INTO "closing_sums" VALUES('population',0,1,4,X'1579AB930DA1D93936B623241A8411DC9948C407FA7B0BFF5216CF26E52F3A57');
INSERT INTO "closing_sums" VALUES('population',0,5,1,X'54CF4749F52836A13724332118CB23ECCD415C5296D33D0B43AD01A8507B8849');
INSERT INTO "closing_sums" VALUES('population ended',0,3,1,X'DDA03E455404139BBEBE734E67BB1F6EF64050F2FA02498FF8A0FC5D277AC669');
INSERT INTO "closing_sums" VALUES('reports',0,2,1,X'95CD73DE31D9A93FF1F670EC609235F0D49359ACEF3A04D9D67139766E7C2390');
INSERT INTO "closing_sums" VALUES('reports',0,4,1,X'B32D239293D51FFD3B5333FB67F7C2E39D97FFBF80F6386B549E5B3202A52674');
INSERT INTO "closing_sums" VALUES('reports',0,5,1,X'7D58D4A0347E5DDB5B16A1EAFC299BB2D76725B087CE4E1BCCA6114208F7C97B');
INSERT INTO "closing_sums" VALUES('scan_bindings',0,1,2,X'8BDE4ACA99D4CE4C0FD57EC7B09E68A6479859D38A79BE303C6DFE523C2599D8');
INSERT INTO "closing_sums" VALUES('scan_policies',0,1,2,X'22315063FFA79A5EE227D94B08FA83A4622BAF8B8975DE7A5225FD4C2D46079B');
INSERT INTO "closing_sums" VALUES('scans',0,1,1,X'9494BF04145B5D5B349FF67B2DFA500ED01FFAF182195AA6E28E24D20286E94A');
INSERT INTO "closing_sums" VALUES('scans',0,2,1,X'445D22373C5ECA802B86ED4ECBEB03F85D991D6DFE23E4651077AC0A780A7C6F');
INSERT INTO "closing_sums" VALUES('scans',0,3,1,X'29E260504833B692B0F6C4FAF87F1B98B691650D418E267ACC51AE0CD0ADB93D');
INSERT INTO "closing_sums" VALUES('scans',0,4,1,X'97704EFE0ED12842898F416721FC6F6DD94E624EFF093BFD3F8FC0DAAA28D7E3');
INSERT INTO "closing_sums" VALUES('scans',0,5,1,X'B2ADDC84072E0FB4053D69335D5EDC021D5E913574CFC51E53BF11486188AEE1');
INSERT INTO "closing_sums" VALUES('scans ended',0,1,1,X'2DB51173B7FAD27DD98347C11830AFFD683FF2350C3086F79017D277B1314444');
INSERT INTO "closing_sums" VALUES('scans ended',0,2,1,X'8667698AC9C82905442418B10C5390EFCEAE3370F6DC7E8356E6F617ACB37DF5');
INSERT INTO "closing_sums" VALUES('scans ended',0,3,1,X'71CEFE619836B54B43239C8A7E2A77FB2C7B99B779433867F74648C058916AF1');
INSERT INTO "closing_sums" VALUES('scans ended',0,4,1,X'5A93BA949B66E3D4A81232FAF2E627220811F039E7DB1A7DA173EFF6356BB313');
INSERT INTO "closing_sums" VALUES('scans ended',0,5,1,X'43D5F93D1D289A360F16B39214EEE200D8A9C7919711FE9D70C05FFE62B28760');
INSERT INTO "closing_sums" VALUES('tallies',0,1,1,X'BE1EA36FFB9D762B9E5618A7CCA2D381363394392CA00A39BB98822EFF595A86');
INSERT INTO "closing_sums" VALUES('tallies',0,2,2,X'32D1AEF1A1BDCC79EFDAA23178A10D25BA1197DB9D911C66194FE7D1F7169EFF');
INSERT INTO "closing_sums" VALUES('tallies',0,4,2,X'B17F84B116AC47FC96C904A24AEA9EB1DC4FCD184B7E4D54412716BE01911B2B');
INSERT INTO "closing_sums" VALUES('tallies',0,5,2,X'32D1AEF1A1BDCC79EFDAA23178A10D25BA1197DB9D911C66194FE7D1F7169EFF');
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
INSERT INTO "coverage" VALUES(2,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,1,X'');
INSERT INTO "coverage" VALUES(4,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,3,X'');
INSERT INTO "coverage" VALUES(5,0,'apps/v1','Deployment','listed',9,0,1,0,'','',0.0,4,X'');
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
INSERT INTO "daily" VALUES(1,2,1);
INSERT INTO "daily" VALUES(2,1,1);
INSERT INTO "daily" VALUES(2,2,1);
INSERT INTO "daily" VALUES(3,1,1);
INSERT INTO "daily" VALUES(3,2,2);
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
INSERT INTO "days" VALUES(1,1,'2026-03-04',3);
INSERT INTO "days" VALUES(2,1,'2026-03-05',4);
INSERT INTO "days" VALUES(3,1,'2026-03-06',5);
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
	moved_to BIGINT, 
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
INSERT INTO "findings" VALUES(1,1,X'C099E4A9DDECF265D77F7E2DB230C4481A1ED84A004DBB170DCE8C1960E9FADA',1,2147483647,NULL,1,'new',0,NULL,1,NULL,1,NULL,NULL,1,1,NULL,1,1,1,'1',1,NULL,NULL,48041832914067);
INSERT INTO "findings" VALUES(2,1,X'0CDE5F21B972F9B6656E3CD677E810F3F98141891D67EA25AEB300B383C465B0',1,3,NULL,1,'new',0,2,1,'objectGone',1,2,NULL,1,1,NULL,1,1,3,'1',1,NULL,NULL,24754215093335);
INSERT INTO "findings" VALUES(3,1,X'839CA65AFF2382A6416552DBE444D1C50628D3846F52F23F1412A88CACAC8F0E',1,2147483647,NULL,1,'new',0,NULL,1,NULL,1,NULL,NULL,1,1,NULL,1,1,2,'1',1,NULL,NULL,207736024421863);
INSERT INTO "findings" VALUES(4,1,X'8EF0DD45A7DC587FB5FDAC0C8E64F50696A0458A9FBB1EB4ECA1E596D634C110',1,2147483647,NULL,1,'new',0,NULL,1,NULL,1,NULL,NULL,1,1,NULL,2,2,4,'1',1,NULL,NULL,273197682640804);
INSERT INTO "findings" VALUES(5,1,X'9C985331E1C2F8AF10A585EA6D6D92CAE5312A9309F59CE59CE91266CFD1A09B',5,2147483647,NULL,5,'new',0,NULL,5,NULL,3,NULL,NULL,5,5,NULL,1,1,5,'1',1,NULL,NULL,218014880422654);
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
INSERT INTO "gaps" VALUES(1,1,'document','policy.yaml','not YAML');
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
INSERT INTO "last_ids" VALUES('scans',5);
INSERT INTO "last_ids" VALUES('policies',2);
INSERT INTO "last_ids" VALUES('bindings',2);
INSERT INTO "last_ids" VALUES('causes',3);
INSERT INTO "last_ids" VALUES('kinds',2);
INSERT INTO "last_ids" VALUES('objects',5);
INSERT INTO "last_ids" VALUES('checks',2);
INSERT INTO "last_ids" VALUES('verdicts',1);
INSERT INTO "last_ids" VALUES('findings',5);
INSERT INTO "last_ids" VALUES('object_sets',4);
INSERT INTO "last_ids" VALUES('set_lists',4);
INSERT INTO "last_ids" VALUES('days',3);
INSERT INTO "last_ids" VALUES('daily_keys',2);
CREATE TABLE list_versions (
	cluster INTEGER NOT NULL, 
	api_group VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	resource_version VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (cluster, api_group, kind), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
CREATE TABLE merged_pages (
	cluster INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	findings BLOB NOT NULL, 
	PRIMARY KEY (cluster, digest), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "merged_pages" VALUES(1,X'BBE80903B564D5B02CE9AECB13FFA2C3',X'789C8B8E36D4318CD589360693A64032160030F304E9');
CREATE TABLE notifications (
	scan INTEGER NOT NULL, 
	route VARCHAR NOT NULL, 
	"before" INTEGER, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (scan, route), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY("before") REFERENCES scans (number)
);
CREATE TABLE object_sets (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	count INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "object_sets" VALUES(1,X'4D7B3EF7300ACF70C892D8327DB8272F54434ADBC61A4E130A563CB59A0D0F47',3,X'789CE30300000F000F');
INSERT INTO "object_sets" VALUES(3,X'67586E98FAD27DA0B9968BC039A1EF34C939B9B8E523A8BEF89D478608C5ECF6',2,X'789C63030000070007');
INSERT INTO "object_sets" VALUES(4,X'951DCEE3A7A4F3AAC67EC76A2CE4469CC76DF650F134BF2572BF60A65C982338',3,X'789C53030000270027');
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
INSERT INTO "objects" VALUES(4,1,2,'shop','p','uid-shop-p');
INSERT INTO "objects" VALUES(5,1,1,'shop','d','uid-shop-d');
CREATE TABLE outside (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	why VARCHAR NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE places (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
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
INSERT INTO "population" VALUES(3,1,3,1,1,0,0);
INSERT INTO "population" VALUES(4,1,2147483647,1,2,0,0);
INSERT INTO "population" VALUES(5,5,2147483647,1,1,0,0);
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
CREATE TABLE scan_places (
	scan INTEGER NOT NULL, 
	places INTEGER NOT NULL, 
	PRIMARY KEY (scan), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(places) REFERENCES places (id)
);
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
CREATE TABLE scan_waivers (
	scan INTEGER NOT NULL, 
	waivers INTEGER NOT NULL, 
	PRIMARY KEY (scan), 
	FOREIGN KEY(scan) REFERENCES scans (number), 
	FOREIGN KEY(waivers) REFERENCES waiver_sets (id)
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
	changed_rules VARCHAR DEFAULT '' NOT NULL, 
	emptiness VARCHAR DEFAULT '' NOT NULL, 
	preview BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (cluster, revision), 
	UNIQUE (id), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
);
INSERT INTO "scans" VALUES(1,'scan-1',1,'prod','6d1c','v1.36.0','cluster','2026-03-02 06:00:00.000000','2026-03-02 06:05:00.000000','incomplete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',0,1,4,4,0,0,0,'vm',23178,'7044050','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',0,0,0,0,0,0,'','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_release":"","kyverno_note":"","kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0032","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false,"kept_labels":[],"configuration":{"path":"","digest":"","settings":[]},"clocks":{"api_server":null,"database":null}}','','[]',900,'2026-03-06 07:05:00.000000','','',0);
INSERT INTO "scans" VALUES(2,'scan-2',1,'prod','6d1c','v1.36.0','cluster','2026-03-03 06:00:00.000000','2026-03-03 06:05:00.000000','incomplete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',1,2,3,0,0,0,1,'vm',23178,'7044050','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,0,0,1,0,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_release":"","kyverno_note":"","kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0032","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false,"kept_labels":[],"configuration":{"path":"","digest":"","settings":[]},"clocks":{"api_server":null,"database":null}}','','[]',900,NULL,'','',0);
INSERT INTO "scans" VALUES(3,'scan-3',1,'prod','6d1c','v1.36.0','cluster','2026-03-04 06:00:00.000000','2026-03-04 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',2,3,2,0,0,1,1,'vm',23178,'7044050','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',0,0,0,0,0,0,'','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_release":"","kyverno_note":"","kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0032","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false,"kept_labels":[],"configuration":{"path":"","digest":"","settings":[]},"clocks":{"api_server":null,"database":null}}','','[]',900,'2026-03-06 07:05:00.000000','','',0);
INSERT INTO "scans" VALUES(4,'scan-4',1,'prod','6d1c','v1.36.0','cluster','2026-03-05 06:00:00.000000','2026-03-05 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',3,4,2,0,0,0,1,'vm',23178,'7044050','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,2,2,1,2,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_release":"","kyverno_note":"","kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0032","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false,"kept_labels":[],"configuration":{"path":"","digest":"","settings":[]},"clocks":{"api_server":null,"database":null}}','','[]',900,NULL,'','',0);
INSERT INTO "scans" VALUES(5,'scan-5',1,'prod','6d1c','v1.36.0','cluster','2026-03-06 06:00:00.000000','2026-03-06 06:05:00.000000','complete','{"namespaces":[],"exclude_namespaces":[],"kinds":[],"skip_kinds":[],"policies":[],"bindings":[],"selector":"","operation":"auto"}','0.1.0',4,5,3,1,0,0,1,'vm',23178,'7044050','2026-03-01 06:00:00.000000','{"username":"","uid":"","groups":[],"extra":[]}','',1,1,2,2,1,2,'[9,0]','','','{"scanner":{"username":"","uid":"","groups":[],"extra":[]},"host":"","command_line":[],"kyverno_release":"","kyverno_note":"","kyverno_compat":"","network":false,"network_to":[],"workers":1,"chunk_size":0,"schema_version":"0032","ladder":2,"without_counts":"","policy_files":[],"without_cluster_policies":false,"kept_labels":[],"configuration":{"path":"","digest":"","settings":[]},"clocks":{"api_server":null,"database":null}}','','[]',900,NULL,'','',0);
CREATE TABLE set_lists (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "set_lists" VALUES(1,X'15C46548E1B96E8DBC10068C5870D6F0B69F248D559731E6F6837809F84BD691',X'789C8B36D4898E066120A1A4140B060038CE05AC');
INSERT INTO "set_lists" VALUES(3,X'541257544DF9A3196EE7CB678552220A0380F14AA790963FC6A749C854D0BD93',X'789C8B36D6898E06E168431D25A558300000391205B0');
INSERT INTO "set_lists" VALUES(4,X'F4A0FD6A6717546BC60C4479C0807F3575867825C7A2EAA14D1F10B6048B8CD1',X'789C8B36D1898E06E168431D25A558300000393405B2');
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
INSERT INTO "tallies" VALUES(1,2,2,'shop','violated',1,1);
INSERT INTO "tallies" VALUES(2,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(2,1,1,'shop','violated',2,0);
INSERT INTO "tallies" VALUES(4,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(4,1,1,'shop','violated',1,0);
INSERT INTO "tallies" VALUES(5,1,1,'bank','violated',1,0);
INSERT INTO "tallies" VALUES(5,1,1,'shop','violated',2,0);
CREATE TABLE unchecked (
	scan INTEGER NOT NULL, 
	findings BLOB NOT NULL, 
	PRIMARY KEY (scan), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
INSERT INTO "unchecked" VALUES(2,X'789C13000000110011');
INSERT INTO "unchecked" VALUES(3,X'789C13000000110011');
INSERT INTO "unchecked" VALUES(4,X'789C13000000110011');
INSERT INTO "unchecked" VALUES(5,X'789C13000000110011');
CREATE TABLE unchecked_now (
	cluster INTEGER NOT NULL, 
	part INTEGER NOT NULL, 
	bits BIGINT NOT NULL, 
	PRIMARY KEY (cluster, part), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
)
 WITHOUT ROWID

;
INSERT INTO "unchecked_now" VALUES(1,0,16);
CREATE TABLE uncovered (
	scan INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	api_version VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	PRIMARY KEY (scan, position), 
	FOREIGN KEY(scan) REFERENCES scans (number)
);
CREATE TABLE verdict_uses (
	verdict INTEGER NOT NULL, 
	cluster INTEGER NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (verdict, cluster, "check")
)
 WITHOUT ROWID

;
INSERT INTO "verdict_uses" VALUES(1,1,1);
INSERT INTO "verdict_uses" VALUES(1,1,2);
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
CREATE TABLE waived_checks (
	cluster INTEGER NOT NULL, 
	waiver BLOB NOT NULL, 
	form BLOB NOT NULL, 
	question VARCHAR NOT NULL, 
	since INTEGER NOT NULL, 
	PRIMARY KEY (cluster, waiver, form), 
	FOREIGN KEY(cluster) REFERENCES clusters (id)
)
 WITHOUT ROWID

;
CREATE TABLE waiver_sets (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	content VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE waivers (
	id INTEGER NOT NULL, 
	digest BLOB NOT NULL, 
	name VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
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
CREATE INDEX findings_continues ON findings (continues) WHERE continues IS NOT NULL;
CREATE UNIQUE INDEX findings_last_word ON findings (fingerprint, cluster) WHERE superseded IS NULL;
CREATE INDEX findings_moved_to ON findings (moved_to) WHERE moved_to IS NOT NULL;
CREATE INDEX findings_until ON findings (cluster, until);
CREATE INDEX objects_by_name ON objects (cluster, kind, namespace, name);
CREATE INDEX population_by_kept ON population (kept, cluster) WHERE kept != 0;
CREATE INDEX population_by_workload ON population (workload, cluster) WHERE workload != 0;
CREATE INDEX population_in_force ON population (cluster, kind) WHERE until = 2147483647;
CREATE INDEX staged_pages_scan ON staged_pages (scan);
CREATE VIRTUAL TABLE words USING fts5(entries, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '-'");
CREATE VIEW v_findings_open AS SELECT clusters.name AS cluster, clusters.id AS cluster_id, substr(lower(hex(findings.fingerprint)), 1, 12) AS finding, CASE WHEN (findings.problem IS NOT NULL) THEN ('p-' || printf('%012x', findings.problem)) ELSE substr(lower(hex(findings.fingerprint)), 1, 12) END AS problem, CASE WHEN (findings.since = newest.revision AND findings.event IN ('new', 'reopened')) THEN findings.event ELSE 'open' END AS status, (substr(first_scan.finished_at, 1, 10) || 'T' || substr(first_scan.finished_at, 12, 8) || 'Z') AS first_seen, (substr(opening_scan.finished_at, 1, 10) || 'T' || substr(opening_scan.finished_at, 12, 8) || 'Z') AS opened_at, checks.language AS language, checks.policy AS policy, checks.binding AS binding, checks.param_namespace AS param_namespace, checks.param_name AS param_name, checks.kind AS check_kind, checks."index" AS check_index, checks.expression AS expression, verdicts.outcome AS outcome, CASE WHEN (verdicts.outcome = 'wouldChange') THEN NULL ELSE CASE WHEN (replace(verdicts.message, char(3), '') != verdicts.message) THEN replace(replace(replace(verdicts.message, char(3) || char(1), char(1)), char(3) || char(2), char(2)), char(3) || char(3), char(3)) ELSE replace(replace(verdicts.message, char(1), objects.name), char(2), objects.namespace) END END AS message, verdicts.operation AS operation, CASE WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 1) THEN 'Audit' WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 2) THEN 'Warn' WHEN (CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END = 3) THEN 'Deny' ELSE '' END AS action, verdicts.actions AS actions, CASE WHEN verdicts.denies THEN 1 ELSE 0 END AS denies, verdicts.excepted_by AS excepted_by, kinds.api_version AS api_version, kinds.kind AS kind, objects.namespace AS namespace, objects.name AS name, objects.uid AS uid, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.api_version, kinds.api_version) END AS workload_api_version, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.kind, kinds.kind) END AS workload_kind, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.namespace, objects.namespace) END AS workload_namespace, CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.name, objects.name) END AS workload_name, causes.kind AS cause, CASE WHEN (NOT (EXISTS (SELECT * 
FROM unchecked_now 
WHERE unchecked_now.cluster = findings.cluster AND unchecked_now.part = findings.id >> 5 AND (unchecked_now.bits >> (findings.id & 31)) & 1 = 1))) THEN 1 ELSE 0 END AS checked 
FROM findings JOIN clusters ON clusters.id = findings.cluster JOIN checks ON checks.id = findings."check" JOIN kinds ON kinds.id = findings.kind JOIN objects ON objects.id = findings.object JOIN verdicts ON verdicts.id = findings.verdict JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
FROM scans GROUP BY scans.cluster) AS newest ON newest.cluster = findings.cluster LEFT OUTER JOIN population ON population.object = findings.object AND population.since = (SELECT max(later.since) AS max_1 
FROM population AS later 
WHERE later.object = findings.object AND later.since < findings.until) LEFT OUTER JOIN workloads ON workloads.id = population.workload JOIN scans AS first_scan ON first_scan.cluster = findings.cluster AND first_scan.revision = findings.first LEFT OUTER JOIN scans AS opening_scan ON opening_scan.cluster = findings.cluster AND opening_scan.revision = findings.opened LEFT OUTER JOIN causes ON causes.id = findings.cause 
WHERE findings.until = 2147483647;
CREATE VIEW v_problems AS SELECT problems.cluster, problems.cluster_id, problems.problem AS problem, CASE WHEN (problems.until != 2147483647) THEN 'resolved' WHEN (problems.opened = problems.newest) THEN CASE WHEN (problems.first = problems.newest) THEN 'new' ELSE 'reopened' END ELSE 'open' END AS status, (substr(first_scan.finished_at, 1, 10) || 'T' || substr(first_scan.finished_at, 12, 8) || 'Z') AS first_seen, (substr(opening_scan.finished_at, 1, 10) || 'T' || substr(opening_scan.finished_at, 12, 8) || 'Z') AS opened_at, (substr(last_scan.finished_at, 1, 10) || 'T' || substr(last_scan.finished_at, 12, 8) || 'Z') AS resolved_at, problems.resolution AS resolution, CASE WHEN (problems.until = 2147483647) THEN problems.findings ELSE 0 END AS findings, CASE WHEN (problems.until = 2147483647) THEN problems.excepted ELSE 0 END AS excepted, problems.action AS action, problems.denies AS denies, problems.language AS language, problems.policy AS policy, problems.check_kind AS check_kind, problems.check_index AS check_index, problems.expression AS expression, problems.workload_api_version AS workload_api_version, problems.workload_kind AS workload_kind, problems.workload_namespace AS workload_namespace, problems.workload_name AS workload_name, CASE WHEN (problems.moved_to IS NOT NULL) THEN ('p-' || printf('%012x', problems.moved_to)) END AS moved_to 
FROM (SELECT clusters.name AS cluster, clusters.id AS cluster_id, max(newest.revision) AS newest, min(CASE WHEN (latest.problem IS NOT NULL) THEN ('p-' || printf('%012x', latest.problem)) ELSE substr(lower(hex(latest.fingerprint)), 1, 12) END) AS problem, max(latest.until) AS until, min(latest.first) AS first, min(latest.opened) AS opened, count(*) AS findings, sum(CASE WHEN (verdicts.excepted_by != '') THEN 1 ELSE 0 END) AS excepted, CASE min(CASE latest.resolution WHEN 'rulesChanged' THEN 0 WHEN 'unbound' THEN 1 WHEN 'notMatched' THEN 2 WHEN 'objectGone' THEN 3 WHEN 'noObjects' THEN 4 WHEN 'moved' THEN 5 WHEN 'fixed' THEN 6 END) WHEN 0 THEN 'rulesChanged' WHEN 1 THEN 'unbound' WHEN 2 THEN 'notMatched' WHEN 3 THEN 'objectGone' WHEN 4 THEN 'noObjects' WHEN 5 THEN 'moved' WHEN 6 THEN 'fixed' END AS resolution, min(CASE WHEN (latest.resolution = 'moved') THEN latest.moved_to END) AS moved_to, min(checks.language) AS language, min(checks.policy) AS policy, min(checks.kind) AS check_kind, min(checks."index") AS check_index, min(checks.expression) AS expression, CASE WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 1) THEN 'Audit' WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 2) THEN 'Warn' WHEN (max(CASE WHEN (replace(verdicts.actions, 'Deny', '') != verdicts.actions) THEN 3 WHEN (replace(verdicts.actions, 'Warn', '') != verdicts.actions) THEN 2 WHEN (replace(verdicts.actions, 'Audit', '') != verdicts.actions) THEN 1 ELSE 0 END) = 3) THEN 'Deny' ELSE '' END AS action, max(CASE WHEN verdicts.denies THEN 1 ELSE 0 END) AS denies, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.api_version, kinds.api_version) END), min(kinds.api_version)) AS workload_api_version, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.kind, kinds.kind) END), min(kinds.kind)) AS workload_kind, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.namespace, objects.namespace) END), min(objects.namespace)) AS workload_namespace, coalesce(min(CASE WHEN (population.object IS NULL) THEN NULL ELSE coalesce(workloads.name, objects.name) END), min(objects.name)) AS workload_name 
FROM (SELECT coalesce(findings.problem, -findings.id) AS number, findings.cluster AS cluster, findings.fingerprint AS fingerprint, findings.until AS until, findings."check" AS "check", findings.kind AS kind, findings.object AS object, findings.verdict AS verdict, findings.problem AS problem, findings.resolution AS resolution, findings.moved_to AS moved_to, max(findings.until) OVER (PARTITION BY findings.cluster, coalesce(findings.problem, -findings.id)) AS last, min(coalesce(findings.problem_first, findings.first)) OVER (PARTITION BY findings.cluster, coalesce(findings.problem, -findings.id)) AS first, coalesce(findings.problem_opened, findings.opened, findings.since) AS opened 
FROM findings 
WHERE findings.superseded IS NULL OR findings.moved_to IS NOT NULL) AS latest JOIN clusters ON clusters.id = latest.cluster JOIN checks ON checks.id = latest."check" JOIN kinds ON kinds.id = latest.kind JOIN objects ON objects.id = latest.object JOIN verdicts ON verdicts.id = latest.verdict JOIN (SELECT scans.cluster AS cluster, max(scans.revision) AS revision 
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
