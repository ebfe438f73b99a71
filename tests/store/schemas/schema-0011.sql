BEGIN TRANSACTION;
CREATE TABLE breaches (
  decision_id text not null,
  tenant text not null,
  profile text not null,
  rule text not null,
  fact text not null,
  found text not null,
  explanation text not null,
  phase text not null,
  created_ms bigint not null,
  primary key (decision_id, rule, fact, phase)
);
INSERT INTO "breaches" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','assist','RC-01','classifier_called','true','classifier_called must never be true for PLATFORM','decision',1794850291497);
INSERT INTO "breaches" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','assist','RC-02','classifier_called','true','classifier_called must never be true for PLATFORM','decision',1794850291497);
INSERT INTO "breaches" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','assist','RC-04','retrieval','true','retrieval must never be true for PLATFORM','outcome',1794850291497);
INSERT INTO "breaches" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','assist','RC-05b','model','"main"','model must be ''conversational'' for PLATFORM','outcome',1794850291497);
CREATE TABLE cache_entries (
  id text primary key,
  space text not null,
  tenant text not null,
  entry text not null,
  created_ms bigint not null,
  expires_ms bigint not null
);
INSERT INTO "cache_entries" VALUES('00000000000000000000000000000000','result','acme','{"text": "kept"}',1,4503599627370496);
CREATE TABLE claim_cards (
  id text primary key,
  claim_text text not null,
  claim_type text not null,
  verdict text not null,
  twin_of text not null,
  visible boolean not null,
  indexed boolean not null,
  created_ms bigint not null,
  body text not null
);
INSERT INTO "claim_cards" VALUES('c1','It''s so.','historical','True','',1,0,1750000000000,'{"id": "c1"}');
CREATE TABLE counted_hours (
  hour_ms bigint primary key,
  late bigint not null,
  counted bigint not null
);
CREATE TABLE decisions (
  id text primary key,
  parent_id text,
  tenant text not null,
  session text,
  profile text not null,
  profile_hash text not null,
  route text not null,
  routes text not null,
  confidence double precision not null,
  decided_by text not null,
  outcome text not null,
  teacher text,
  elapsed_us double precision not null,
  created_ms bigint not null,
  question text,
  digest text,
  kept text not null,
  asked json,
  body json not null
, key_id text not null default '');
INSERT INTO "decisions" VALUES('01M7JPKZA99YV71Z2YS9W4G200',NULL,'',NULL,'study','e639feaae84afceb','standalone_definition','["standalone_definition"]',0.992391071693235,'student','E-',NULL,391.691,1794850291409,'Define entropy',NULL,'full',NULL,'{"id":"01M7JPKZA99YV71Z2YS9W4G200","profile":"study","profile_hash":"e639feaae84afceb","route":"standalone_definition","routes":["standalone_definition"],"confidence":0.992391071693235,"calibrated":true,"margin":0.9894781963300161,"by":"student","outcome":"E-","reasons":[{"code":"student.label","text":"the student says standalone_definition (0.99 sure to be right), not page_grounded_definition"}],"policy":{"image":false,"history":false,"history_turns":0,"memory":false,"notes":false,"max_sentences":2,"instruction":"Return a direct standalone definition in at most two sentences. Do not reference the page unless explicitly asked."},"scores":{"standalone_definition":0.9941391040276926,"page_grounded_definition":0.004660907697676474,"general_contextual":0.001199988274631013},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"student","kind":"student.v1","ended":"accepted","elapsed_us":260.036,"gate":{"confidence":0.6,"margin":0.0},"verdict":{"routes":["standalone_definition"],"confidence":0.992391071693235,"margin":0.9894781963300161,"scores":{"standalone_definition":0.9941391040276926,"page_grounded_definition":0.004660907697676474,"general_contextual":0.001199988274631013},"decisive":false,"calibrated":true}}],"parts":[],"elapsed_us":391.691,"remark_count":0,"hits":[0]}','');
INSERT INTO "decisions" VALUES('01M7JPKZPG9YV71Z2YS9W4G302',NULL,'','s','sources','f0041ac4890adbac','forecast','["forecast","web"]',9.62267132235265387762e-01,'parts','E-',NULL,22891.619,1794850291478,'What is the weather tomorrow and who won the match yesterday?',NULL,'full',NULL,'{"id":"01M7JPKZPG9YV71Z2YS9W4G302","profile":"sources","profile_hash":"f0041ac4890adbac","route":"forecast","routes":["forecast","web"],"confidence":0.9622671322352654,"calibrated":false,"margin":0.9710304456327039,"by":"parts","outcome":"E-","reasons":[{"code":"split.parts","text":"2 parts, each decided on its own"}],"policy":{"sources":["forecast","web"]},"scores":{},"trace":[],"parts":[{"id":"01M7JPKZPG9YV71Z2YS9W4G300","profile":"sources","profile_hash":"f0041ac4890adbac","route":"forecast","routes":["forecast"],"confidence":0.9939959362159052,"calibrated":true,"margin":0.9988566174094942,"by":"student","outcome":"E-","reasons":[{"code":"student.label","text":"the student says forecast (0.99 sure to be right), not kiwix"}],"policy":{"sources":["forecast"]},"scores":{"kiwix":0.000521683346331084,"forecast":0.9993783007558252,"news":1.1958884979610886e-6,"web":2.9602614496384507e-6,"ha":0.0000666451524843459,"changes":3.3325762032217298e-6,"uptime":0.000014708583433837318,"files":0.000011173435774899878},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"intents","kind":"rules.v1","ended":"passed","elapsed_us":19.72},{"layer":"student","kind":"student.v1","ended":"accepted","elapsed_us":387.835,"gate":{"confidence":0.7,"margin":0.0},"verdict":{"routes":["forecast"],"confidence":0.9939959362159052,"margin":0.9988566174094942,"scores":{"kiwix":0.000521683346331084,"forecast":0.9993783007558252,"news":1.1958884979610886e-6,"web":2.9602614496384507e-6,"ha":0.0000666451524843459,"changes":3.3325762032217298e-6,"uptime":0.000014708583433837318,"files":0.000011173435774899878},"decisive":false,"calibrated":true}}],"parts":[],"elapsed_us":407.555,"role":"part","text":"What is the weather tomorrow","remark_count":0,"hits":[2,3]},{"id":"01M7JPKZPG9YV71Z2YS9W4G301","profile":"sources","profile_hash":"f0041ac4890adbac","route":"web","routes":["web"],"confidence":0.9622671322352654,"calibrated":true,"margin":0.9710304456327039,"by":"student","outcome":"E-","reasons":[{"code":"student.label","text":"the student says web (0.96 sure to be right), not news"}],"policy":{"sources":["web"]},"scores":{"kiwix":0.000865211150513559,"forecast":0.0009240702390787029,"news":0.013115684596779203,"web":0.9841461302294832,"ha":0.0005399631308101231,"changes":0.000284773001484906,"uptime":0.00011494938401494894,"files":9.21826783554277e-6},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"intents","kind":"rules.v1","ended":"passed","elapsed_us":3.956},{"layer":"student","kind":"student.v1","ended":"accepted","elapsed_us":145.826,"gate":{"confidence":0.7,"margin":0.0},"verdict":{"routes":["web"],"confidence":0.9622671322352654,"margin":0.9710304456327039,"scores":{"kiwix":0.000865211150513559,"forecast":0.0009240702390787029,"news":0.013115684596779203,"web":0.9841461302294832,"ha":0.0005399631308101231,"changes":0.000284773001484906,"uptime":0.00011494938401494894,"files":9.21826783554277e-6},"decisive":false,"calibrated":true}}],"parts":[],"elapsed_us":149.782,"role":"part","text":"who won the match yesterday?","remark_count":0,"hits":[38]}],"elapsed_us":22891.619,"remark_count":1}','');
INSERT INTO "decisions" VALUES('01M7JPKZPG9YV71Z2YS9W4G300','01M7JPKZPG9YV71Z2YS9W4G302','','s','sources','f0041ac4890adbac','forecast','["forecast"]',9.93995936215905206978e-01,'student','E-',NULL,407.555,1794850291478,'What is the weather tomorrow',NULL,'full',NULL,'{"id":"01M7JPKZPG9YV71Z2YS9W4G300","profile":"sources","profile_hash":"f0041ac4890adbac","route":"forecast","routes":["forecast"],"confidence":0.9939959362159052,"calibrated":true,"margin":0.9988566174094942,"by":"student","outcome":"E-","reasons":[{"code":"student.label","text":"the student says forecast (0.99 sure to be right), not kiwix"}],"policy":{"sources":["forecast"]},"scores":{"kiwix":0.000521683346331084,"forecast":0.9993783007558252,"news":1.1958884979610886e-6,"web":2.9602614496384507e-6,"ha":0.0000666451524843459,"changes":3.3325762032217298e-6,"uptime":0.000014708583433837318,"files":0.000011173435774899878},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"intents","kind":"rules.v1","ended":"passed","elapsed_us":19.72},{"layer":"student","kind":"student.v1","ended":"accepted","elapsed_us":387.835,"gate":{"confidence":0.7,"margin":0.0},"verdict":{"routes":["forecast"],"confidence":0.9939959362159052,"margin":0.9988566174094942,"scores":{"kiwix":0.000521683346331084,"forecast":0.9993783007558252,"news":1.1958884979610886e-6,"web":2.9602614496384507e-6,"ha":0.0000666451524843459,"changes":3.3325762032217298e-6,"uptime":0.000014708583433837318,"files":0.000011173435774899878},"decisive":false,"calibrated":true}}],"parts":[],"elapsed_us":407.555,"role":"part","text":"What is the weather tomorrow","remark_count":0,"hits":[2,3]}','');
INSERT INTO "decisions" VALUES('01M7JPKZPG9YV71Z2YS9W4G301','01M7JPKZPG9YV71Z2YS9W4G302','','s','sources','f0041ac4890adbac','web','["web"]',9.62267132235265387762e-01,'student','E-',NULL,149.782,1794850291478,'who won the match yesterday?',NULL,'full',NULL,'{"id":"01M7JPKZPG9YV71Z2YS9W4G301","profile":"sources","profile_hash":"f0041ac4890adbac","route":"web","routes":["web"],"confidence":0.9622671322352654,"calibrated":true,"margin":0.9710304456327039,"by":"student","outcome":"E-","reasons":[{"code":"student.label","text":"the student says web (0.96 sure to be right), not news"}],"policy":{"sources":["web"]},"scores":{"kiwix":0.000865211150513559,"forecast":0.0009240702390787029,"news":0.013115684596779203,"web":0.9841461302294832,"ha":0.0005399631308101231,"changes":0.000284773001484906,"uptime":0.00011494938401494894,"files":9.21826783554277e-6},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"intents","kind":"rules.v1","ended":"passed","elapsed_us":3.956},{"layer":"student","kind":"student.v1","ended":"accepted","elapsed_us":145.826,"gate":{"confidence":0.7,"margin":0.0},"verdict":{"routes":["web"],"confidence":0.9622671322352654,"margin":0.9710304456327039,"scores":{"kiwix":0.000865211150513559,"forecast":0.0009240702390787029,"news":0.013115684596779203,"web":0.9841461302294832,"ha":0.0005399631308101231,"changes":0.000284773001484906,"uptime":0.00011494938401494894,"files":9.21826783554277e-6},"decisive":false,"calibrated":true}}],"parts":[],"elapsed_us":149.782,"role":"part","text":"who won the match yesterday?","remark_count":0,"hits":[38]}','');
INSERT INTO "decisions" VALUES('01M7JPKZPH9YV71Z2YS9W4G400',NULL,'',NULL,'testing','7c3dd725f131522a','second','["second"]',0.9,'llm','L-','second',191.464,1794850291494,'a question a model was asked',NULL,'full',NULL,'{"id":"01M7JPKZPH9YV71Z2YS9W4G400","profile":"testing","profile_hash":"7c3dd725f131522a","route":"second","routes":["second"],"confidence":0.9,"calibrated":false,"margin":0.0,"by":"llm","outcome":"L-","reasons":[],"policy":{},"scores":{},"trace":[{"layer":"llm","kind":"testing.v1","ended":"accepted","elapsed_us":118.045,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["second"],"confidence":0.9,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":191.464,"remark_count":0}','');
INSERT INTO "decisions" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100',NULL,'acme','s','assist','bcd72535a9e94163','PLATFORM','["PLATFORM"]',1.0,'rules','R-','RETRIEVAL',10632.858,1794850291497,'You are a direct and concise assistant',NULL,'full',NULL,'{"id":"01M7JPKZ3K9YV71Z2YS9W4G100","profile":"assist","profile_hash":"bcd72535a9e94163","route":"PLATFORM","routes":["PLATFORM"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"rules","outcome":"R-","reasons":[{"code":"rule.rc-01","text":"RC-01: a registered platform phrase"}],"policy":{"retrieval":false,"model":"conversational"},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"rules","kind":"rules.v1","ended":"accepted","elapsed_us":64.746,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["PLATFORM"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":true}},{"layer":"llm","kind":"testing.v1","ended":"held","elapsed_us":1.0,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["RETRIEVAL"],"confidence":0.9,"margin":0.0,"scores":{},"decisive":false},"reasons":[{"code":"gate.held","text":"below the gate: confidence 0.90 (needs 0.00)"}]}],"parts":[],"elapsed_us":10632.858,"remark_count":0,"hits":[0]}','');
CREATE TABLE feedback (
  id text primary key,
  decision_id text not null,
  tenant text not null,
  verdict text not null,
  should_be text,
  given_by text not null,
  note text not null,
  created_ms bigint not null
);
INSERT INTO "feedback" VALUES('01M7JPKZR79YV71Z2YS9W4G500','01M7JPKZA99YV71Z2YS9W4G200','','wrong',NULL,'me','no: 100 %',1794850291463);
INSERT INTO "feedback" VALUES('01M7JPKZRZ9YV71Z2YS9W4G700','01M7JPKZPG9YV71Z2YS9W4G302','','wrong',NULL,'me','no: 100 %',1794850291487);
INSERT INTO "feedback" VALUES('01M7JPKZS99YV71Z2YS9W4G800','01M7JPKZPH9YV71Z2YS9W4G400','','wrong',NULL,'me','no: 100 %',1794850291497);
INSERT INTO "feedback" VALUES('01M7JPKZSM9YV71Z2YS9W4G900','01M7JPKZ3K9YV71Z2YS9W4G100','acme','wrong',NULL,'me','no: 100 %',1794850291508);
CREATE TABLE key_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  decisions bigint not null,
  by_models bigint not null,
  fallbacks bigint not null,
  answers bigint not null,
  cost_usd double precision
);
CREATE TABLE keys (
  id text primary key,
  digest text not null,
  name text not null,
  tenant text not null,
  scopes text not null,
  profiles text,
  ceiling text,
  may_force boolean not null,
  budget_usd double precision,
  per_minute bigint,
  created_ms bigint not null,
  expires_ms bigint,
  revoked_ms bigint
, budget_day_usd double precision, budget_month_usd double precision);
INSERT INTO "keys" VALUES('k1','0000000000000000000000000000000000000000000000000000000000000000','a key','acme','["ask","route","decisions:read","feedback:write"]','["study"]',NULL,1,1.5,NULL,0,NULL,NULL,NULL,NULL);
CREATE TABLE latency_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  from_us bigint not null,
  decisions bigint not null
);
CREATE TABLE outcomes (
  decision_id text primary key,
  tenant text not null,
  ended text not null,
  slot text,
  model text,
  attempts bigint,
  input_tokens bigint,
  output_tokens bigint,
  cost_usd double precision,
  baseline_usd double precision,
  classifier_usd double precision,
  retrieval boolean,
  fallback text,
  cap_reached text,
  elapsed_ms double precision,
  sources json,
  extra json,
  created_ms bigint not null
);
INSERT INTO "outcomes" VALUES('01M7JPKZA99YV71Z2YS9W4G200','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794850291439);
INSERT INTO "outcomes" VALUES('01M7JPKZPG9YV71Z2YS9W4G302','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794850291479);
INSERT INTO "outcomes" VALUES('01M7JPKZPH9YV71Z2YS9W4G400','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794850291494);
INSERT INTO "outcomes" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794850291497);
CREATE TABLE profiles (
  hash text primary key,
  name text not null,
  resolved json not null,
  created_ms bigint not null
, patterns json);
INSERT INTO "profiles" VALUES('e639feaae84afceb','study','{"name":"study","description":"which context a question gets (image, history, memory, notes) and how long the answer may be","routes":["standalone_definition","page_grounded_definition","general_contextual"],"deadline_ms":400,"cases":"cases/study.jsonl","fallback":{"route":"general_contextual","confidence":0.5,"held":0.51,"held_by":["student"]},"off":{"route":"general_contextual"},"blank":{"route":"general_contextual"},"settings":{"enable_query_router":"enabled","router_local_confidence_threshold":"layers.local.accept.confidence","router_local_margin_threshold":"layers.local.accept.margin","router_model":"layers.llm.model","router_timeout_ms":"layers.llm.deadline_ms","router_max_tokens":"layers.llm.max_tokens","router_llm_confidence_threshold":"layers.llm.accept.confidence","router_fallback_mode":"fallback.route"},"layers":[{"id":"declared","kind":"declared.v1","aliases":{"standalone":"standalone_definition","definition":"standalone_definition","page_grounded":"page_grounded_definition","page_definition":"page_grounded_definition","contextual":"general_contextual","general":"general_contextual"}},{"id":"student","kind":"student.v1","optional":true,"accept":{"confidence":0.6},"artefact":"e2846a497e42cef1"},{"id":"local","kind":"signals.v1","accept":{"confidence":0.75,"margin":0.2},"signals":[{"id":"definition","words":["define","definition","what is","what''s","who is","meaning"],"ordered":[["what does","mean"],["explain what","means"]]},{"id":"explain","words":["explain"]},{"id":"concision","words":["very concisely","concisely","briefly","in short","quickly","quick summary"]},{"id":"doc_ref","label":"document","words":["page","paper","book","text","paragraph","section","definition","figure","table","equation","line","column","caption","graph","chart"]},{"id":"deictic","words":["this","that","here","there","above","below"]},{"id":"spatial","words":["left","right","far right","far left","top","bottom","upper","lower","middle","center"]},{"id":"on_page","label":"place on the page","patterns":["\\b(?:on|in|from)\\s+the\\s+(?:[a-z]+\\s+){0,3}(?:page|paragraph|section|figure|table|equation|left|right|top|bottom)\\b"]},{"id":"general","label":"open question","words":["summarize","walk me through","what is happening","what does this section mean","what does that section mean"]}],"ranking":{"sums":{"definition":{"definition":0.55,"explain":0.18,"concision":0.16},"page":{"doc_ref":0.3,"deictic":0.22,"spatial":0.25,"on_page":0.24},"contextual":{"general":0.44,"deictic":0.16,"doc_ref":0.1}},"base":{"contextual":0.24},"routes":{"standalone_definition":[{"add":1.12,"of":"definition"},{"add":-0.68,"of":"page"},{"add":0.08,"when":["concision"]}],"page_grounded_definition":[{"add":1.0,"of":"page"},{"add":1.25,"of":"definition","above":0.6},{"add":0.22,"when":["spatial","doc_ref"]}],"general_contextual":[{"add":1.0,"of":"contextual"},{"add":0.7,"of":"page"},{"add":-0.16,"when_sum":{"definition":0.75,"page":0.35}}]},"floors":[{"route":"page_grounded_definition","when":["spatial","doc_ref"],"confidence":0.86}]},"no_signal_confidence":0.34},{"id":"llm","kind":"llm.v1","optional":true,"accept":{"confidence":0.7},"deadline_ms":350,"max_tokens":80,"slot":"router","reply":"json","guide":"A reader asks about the page in front of them, or about something else. Decide which context the answer needs. Examples:\n\"Define macroeconomics very concisely\" is standalone_definition.\n\"Explain what complexity means in the definition on the far right\" is page_grounded_definition.\n\"What does this section mean?\" is general_contextual.","aliases":{"standalone":"standalone_definition","definition":"standalone_definition","page_grounded":"page_grounded_definition","page_definition":"page_grounded_definition","contextual":"general_contextual","general":"general_contextual"},"describe":{"standalone_definition":"a term is to be defined on its own; the page is not needed","page_grounded_definition":"a term or passage is to be explained as it stands on the page: it names a place on the page, or says that the context there matters","general_contextual":"anything else: the page, the conversation so far or the reader''s notes may matter"}}],"policy":{"standalone_definition":{"image":false,"history":false,"history_turns":0,"memory":false,"notes":false,"max_sentences":2,"instruction":"Return a direct standalone definition in at most two sentences. Do not reference the page unless explicitly asked."},"page_grounded_definition":{"image":true,"history":true,"history_turns":2,"memory":false,"notes":false,"max_sentences":2,"instruction":"Answer the definition request using the relevant page location. Keep the answer to at most two sentences."},"general_contextual":{"image":true,"history":true,"history_turns":0,"memory":true,"notes":true}},"extends":"study-seed","adjust":[{"kind":"followup.v1","instead_of":"standalone_definition","route":"general_contextual"}]}',1794850291409,'[["signals.definition","phrase","\\bdefine\\b"],["signals.definition","phrase","\\bdefinition\\b"],["signals.definition","phrase","\\bwhat +is\\b"],["signals.definition","phrase","\\bwhat\\''s\\b"],["signals.definition","phrase","\\bwho +is\\b"],["signals.definition","phrase","\\bmeaning\\b"],["signals.definition","ordered","\\bwhat +does\\b[^\\S\\n]+\\S[^\\n]*[^\\S\\n]\\bmean\\b"],["signals.definition","ordered","\\bexplain +what\\b[^\\S\\n]+\\S[^\\n]*[^\\S\\n]\\bmeans\\b"],["signals.explain","phrase","\\bexplain\\b"],["signals.concision","phrase","\\bvery +concisely\\b"],["signals.concision","phrase","\\bconcisely\\b"],["signals.concision","phrase","\\bbriefly\\b"],["signals.concision","phrase","\\bin +short\\b"],["signals.concision","phrase","\\bquickly\\b"],["signals.concision","phrase","\\bquick +summary\\b"],["signals.doc_ref","phrase","\\bpage\\b"],["signals.doc_ref","phrase","\\bpaper\\b"],["signals.doc_ref","phrase","\\bbook\\b"],["signals.doc_ref","phrase","\\btext\\b"],["signals.doc_ref","phrase","\\bparagraph\\b"],["signals.doc_ref","phrase","\\bsection\\b"],["signals.doc_ref","phrase","\\bdefinition\\b"],["signals.doc_ref","phrase","\\bfigure\\b"],["signals.doc_ref","phrase","\\btable\\b"],["signals.doc_ref","phrase","\\bequation\\b"],["signals.doc_ref","phrase","\\bline\\b"],["signals.doc_ref","phrase","\\bcolumn\\b"],["signals.doc_ref","phrase","\\bcaption\\b"],["signals.doc_ref","phrase","\\bgraph\\b"],["signals.doc_ref","phrase","\\bchart\\b"],["signals.deictic","phrase","\\bthis\\b"],["signals.deictic","phrase","\\bthat\\b"],["signals.deictic","phrase","\\bhere\\b"],["signals.deictic","phrase","\\bthere\\b"],["signals.deictic","phrase","\\babove\\b"],["signals.deictic","phrase","\\bbelow\\b"],["signals.spatial","phrase","\\bleft\\b"],["signals.spatial","phrase","\\bright\\b"],["signals.spatial","phrase","\\bfar +right\\b"],["signals.spatial","phrase","\\bfar +left\\b"],["signals.spatial","phrase","\\btop\\b"],["signals.spatial","phrase","\\bbottom\\b"],["signals.spatial","phrase","\\bupper\\b"],["signals.spatial","phrase","\\blower\\b"],["signals.spatial","phrase","\\bmiddle\\b"],["signals.spatial","phrase","\\bcenter\\b"],["signals.on_page","regex","\\b(?:on|in|from)\\s+the\\s+(?:[a-z]+\\s+){0,3}(?:page|paragraph|section|figure|table|equation|left|right|top|bottom)\\b"],["signals.general","phrase","\\bsummarize\\b"],["signals.general","phrase","\\bwalk +me +through\\b"],["signals.general","phrase","\\bwhat +is +happening\\b"],["signals.general","phrase","\\bwhat +does +this +section +mean\\b"],["signals.general","phrase","\\bwhat +does +that +section +mean\\b"]]');
INSERT INTO "profiles" VALUES('f0041ac4890adbac','sources','{"name":"sources","description":"which knowledge source(s) answer, after splitting compound and conditional questions","routes":["kiwix","forecast","news","web","ha","changes","uptime","files"],"deadline_ms":10000,"fallback":{"route":"kiwix","confidence":0.5},"cases":"cases/sources.jsonl","split":{"compound":true,"conditions":true},"settings":{"default_source":"fallback.route","router_timeout_ms":"layers.llm.deadline_ms"},"layers":[{"id":"declared","kind":"declared.v1","nothing":["auto"]},{"id":"intents","kind":"rules.v1","rules":[{"id":"in-the-news","route":"news","text":"what is in the news is asked of the news","when":{"patterns":["^(what( is|.s|s)( else)?|(is there )?anything( new| interesting| else)?) (in|on) the news( today| tonight| now| right now| this morning| at the moment)?( please)?[ ?!.]*$"]}}]},{"id":"student","kind":"student.v1","optional":true,"accept":{"confidence":0.7},"artefact":"79e786256e100543"},{"id":"keywords","kind":"keywords.v1","phrases":{"forecast":["forecast","weather","tomorrow","this weekend","later today","will it rain","will it snow","high temp","low temp","precipitation","wind forecast","going to be hot","going to be cold","is it raining","it is raining|it''s raining|it rains|it rain","is it snowing","it is snowing|it''s snowing|it snows|it snow","is it going to rain","going to rain","is it going to snow","going to snow","it is not raining|it''s not raining|it isn''t raining|it doesn''t rain|it does not rain|it won''t rain|it stays dry","it is not snowing|it''s not snowing|it isn''t snowing","it gets hot|it gets hotter|it gets cold|it gets colder|it gets warm|it gets warmer|it gets windy","temperature outside|humidity outside"],"news":["news","headlines","feeds","rss","recent articles","my feeds"],"web":["search the web","google","look it up online","current events","web search","find online","who won","search online"],"ha":["which lights are on","lights on","lights off","lights are on","lights are off","lights status","house status","home status","house summary","are the doors locked","door locked","doors locked","door is locked","doors are locked","door unlocked","doors unlocked","door is unlocked","doors are unlocked","door open","doors open","door is open","doors are open","door closed","doors closed","door is closed","doors are closed","garage door","garage","indoor air","air quality","indoor sensors","how much power","power consumption","energy usage","battery status","battery levels","low battery","any motion","recent motion","motion detected","security status","house secure","outdoor conditions","outside conditions","overhead light|ceiling light|light up|light it up","brightness","curtain|curtains","blinds","shades","shutters","awning|awnings","thermostat|thermostats","switches","is detected|are detected","are triggered|is triggered","set temperature|set the temperature","valve position|main valve","upstairs","downstairs","first floor","updates available"],"changes":["what changed","any changes","whats new","what''s new","any new outages","new outages","any outages today","weather change","forecast change","new articles","new news","new headlines","anything different","what happened today","since last time","changes today","changed in the house","house since","anything changed","while i was at work","while i''ve been at work","while at work","since work","since this morning","this morning while","since i left","since i woke up"],"uptime":["uptime","is down","what''s down","whats down","any outages","service status","network status","are all services","is everything up","what is offline","my services","services up","services down","anything down","everything down","everything up","network down","network up","what''s offline","whats offline","anything offline","any services","check services","is my network","is the network","server down","server up","server status","is it running","is it up","is it down","are they up","are they down","everything online","is everything online","anything online"]}},{"id":"llm","kind":"llm.v1","optional":true,"deadline_ms":10000,"max_tokens":30,"slot":"router","most":3,"reply":"labels","guide":"Decide which knowledge source answers a question: usually one; two or three only where it really needs them together.","describe":{"kiwix":"an offline encyclopedia: facts, people, places, history, science, how things work","forecast":"the weather, now and in the coming days","news":"the user''s news feeds","web":"a web search: recent events, products, anything the others do not have","ha":"the user''s smart home: lights, doors, sensors, energy","changes":"what has changed since the user last looked","uptime":"whether the user''s services and servers are up","files":"the user''s own documents"}}],"adjust":[{"id":"framing","kind":"framing.v1","route":"kiwix"}],"policy":{"kiwix":{"sources":["kiwix"]},"forecast":{"sources":["forecast"]},"news":{"sources":["news"]},"web":{"sources":["web"]},"ha":{"sources":["ha"]},"changes":{"sources":["changes"]},"uptime":{"sources":["uptime"]},"files":{"sources":["files"]}}}',1794850291478,'[["rule.in-the-news","regex","^(what( is|(?:Z[^\\x00-\\x7f]Z|[^\\nZ])s|s)( else)?|(is there )?anything( new| interesting| else)?) (in|on) the news( today| tonight| now| right now| this morning| at the moment)?( please)?[ ?!.]*$"],["keyword.forecast","phrase","\\bforecast\\b"],["keyword.forecast","phrase","\\bweather\\b"],["keyword.forecast","phrase","\\btomorrow\\b"],["keyword.forecast","phrase","\\bthis +weekend\\b"],["keyword.forecast","phrase","\\blater +today\\b"],["keyword.forecast","phrase","\\bwill +it +rain\\b"],["keyword.forecast","phrase","\\bwill +it +snow\\b"],["keyword.forecast","phrase","\\bhigh +temp\\b"],["keyword.forecast","phrase","\\blow +temp\\b"],["keyword.forecast","phrase","\\bprecipitation\\b"],["keyword.forecast","phrase","\\bwind +forecast\\b"],["keyword.forecast","phrase","\\bgoing +to +be +hot\\b"],["keyword.forecast","phrase","\\bgoing +to +be +cold\\b"],["keyword.forecast","phrase","\\bis +it +raining\\b"],["keyword.forecast","phrase","(?:\\bit +is +raining\\b|\\bit\\''s +raining\\b|\\bit +rains\\b|\\bit +rain\\b)"],["keyword.forecast","phrase","\\bis +it +snowing\\b"],["keyword.forecast","phrase","(?:\\bit +is +snowing\\b|\\bit\\''s +snowing\\b|\\bit +snows\\b|\\bit +snow\\b)"],["keyword.forecast","phrase","\\bis +it +going +to +rain\\b"],["keyword.forecast","phrase","\\bgoing +to +rain\\b"],["keyword.forecast","phrase","\\bis +it +going +to +snow\\b"],["keyword.forecast","phrase","\\bgoing +to +snow\\b"],["keyword.forecast","phrase","(?:\\bit +is +not +raining\\b|\\bit\\''s +not +raining\\b|\\bit +isn\\''t +raining\\b|\\bit +doesn\\''t +rain\\b|\\bit +does +not +rain\\b|\\bit +won\\''t +rain\\b|\\bit +stays +dry\\b)"],["keyword.forecast","phrase","(?:\\bit +is +not +snowing\\b|\\bit\\''s +not +snowing\\b|\\bit +isn\\''t +snowing\\b)"],["keyword.forecast","phrase","(?:\\bit +gets +hot\\b|\\bit +gets +hotter\\b|\\bit +gets +cold\\b|\\bit +gets +colder\\b|\\bit +gets +warm\\b|\\bit +gets +warmer\\b|\\bit +gets +windy\\b)"],["keyword.forecast","phrase","(?:\\btemperature +outside\\b|\\bhumidity +outside\\b)"],["keyword.news","phrase","\\bnews\\b"],["keyword.news","phrase","\\bheadlines\\b"],["keyword.news","phrase","\\bfeeds\\b"],["keyword.news","phrase","\\brss\\b"],["keyword.news","phrase","\\brecent +articles\\b"],["keyword.news","phrase","\\bmy +feeds\\b"],["keyword.web","phrase","\\bsearch +the +web\\b"],["keyword.web","phrase","\\bgoogle\\b"],["keyword.web","phrase","\\blook +it +up +online\\b"],["keyword.web","phrase","\\bcurrent +events\\b"],["keyword.web","phrase","\\bweb +search\\b"],["keyword.web","phrase","\\bfind +online\\b"],["keyword.web","phrase","\\bwho +won\\b"],["keyword.web","phrase","\\bsearch +online\\b"],["keyword.ha","phrase","\\bwhich +lights +are +on\\b"],["keyword.ha","phrase","\\blights +on\\b"],["keyword.ha","phrase","\\blights +off\\b"],["keyword.ha","phrase","\\blights +are +on\\b"],["keyword.ha","phrase","\\blights +are +off\\b"],["keyword.ha","phrase","\\blights +status\\b"],["keyword.ha","phrase","\\bhouse +status\\b"],["keyword.ha","phrase","\\bhome +status\\b"],["keyword.ha","phrase","\\bhouse +summary\\b"],["keyword.ha","phrase","\\bare +the +doors +locked\\b"],["keyword.ha","phrase","\\bdoor +locked\\b"],["keyword.ha","phrase","\\bdoors +locked\\b"],["keyword.ha","phrase","\\bdoor +is +locked\\b"],["keyword.ha","phrase","\\bdoors +are +locked\\b"],["keyword.ha","phrase","\\bdoor +unlocked\\b"],["keyword.ha","phrase","\\bdoors +unlocked\\b"],["keyword.ha","phrase","\\bdoor +is +unlocked\\b"],["keyword.ha","phrase","\\bdoors +are +unlocked\\b"],["keyword.ha","phrase","\\bdoor +open\\b"],["keyword.ha","phrase","\\bdoors +open\\b"],["keyword.ha","phrase","\\bdoor +is +open\\b"],["keyword.ha","phrase","\\bdoors +are +open\\b"],["keyword.ha","phrase","\\bdoor +closed\\b"],["keyword.ha","phrase","\\bdoors +closed\\b"],["keyword.ha","phrase","\\bdoor +is +closed\\b"],["keyword.ha","phrase","\\bdoors +are +closed\\b"],["keyword.ha","phrase","\\bgarage +door\\b"],["keyword.ha","phrase","\\bgarage\\b"],["keyword.ha","phrase","\\bindoor +air\\b"],["keyword.ha","phrase","\\bair +quality\\b"],["keyword.ha","phrase","\\bindoor +sensors\\b"],["keyword.ha","phrase","\\bhow +much +power\\b"],["keyword.ha","phrase","\\bpower +consumption\\b"],["keyword.ha","phrase","\\benergy +usage\\b"],["keyword.ha","phrase","\\bbattery +status\\b"],["keyword.ha","phrase","\\bbattery +levels\\b"],["keyword.ha","phrase","\\blow +battery\\b"],["keyword.ha","phrase","\\bany +motion\\b"],["keyword.ha","phrase","\\brecent +motion\\b"],["keyword.ha","phrase","\\bmotion +detected\\b"],["keyword.ha","phrase","\\bsecurity +status\\b"],["keyword.ha","phrase","\\bhouse +secure\\b"],["keyword.ha","phrase","\\boutdoor +conditions\\b"],["keyword.ha","phrase","\\boutside +conditions\\b"],["keyword.ha","phrase","(?:\\boverhead +light\\b|\\bceiling +light\\b|\\blight +up\\b|\\blight +it +up\\b)"],["keyword.ha","phrase","\\bbrightness\\b"],["keyword.ha","phrase","(?:\\bcurtain\\b|\\bcurtains\\b)"],["keyword.ha","phrase","\\bblinds\\b"],["keyword.ha","phrase","\\bshades\\b"],["keyword.ha","phrase","\\bshutters\\b"],["keyword.ha","phrase","(?:\\bawning\\b|\\bawnings\\b)"],["keyword.ha","phrase","(?:\\bthermostat\\b|\\bthermostats\\b)"],["keyword.ha","phrase","\\bswitches\\b"],["keyword.ha","phrase","(?:\\bis +detected\\b|\\bare +detected\\b)"],["keyword.ha","phrase","(?:\\bare +triggered\\b|\\bis +triggered\\b)"],["keyword.ha","phrase","(?:\\bset +temperature\\b|\\bset +the +temperature\\b)"],["keyword.ha","phrase","(?:\\bvalve +position\\b|\\bmain +valve\\b)"],["keyword.ha","phrase","\\bupstairs\\b"],["keyword.ha","phrase","\\bdownstairs\\b"],["keyword.ha","phrase","\\bfirst +floor\\b"],["keyword.ha","phrase","\\bupdates +available\\b"],["keyword.changes","phrase","\\bwhat +changed\\b"],["keyword.changes","phrase","\\bany +changes\\b"],["keyword.changes","phrase","\\bwhats +new\\b"],["keyword.changes","phrase","\\bwhat\\''s +new\\b"],["keyword.changes","phrase","\\bany +new +outages\\b"],["keyword.changes","phrase","\\bnew +outages\\b"],["keyword.changes","phrase","\\bany +outages +today\\b"],["keyword.changes","phrase","\\bweather +change\\b"],["keyword.changes","phrase","\\bforecast +change\\b"],["keyword.changes","phrase","\\bnew +articles\\b"],["keyword.changes","phrase","\\bnew +news\\b"],["keyword.changes","phrase","\\bnew +headlines\\b"],["keyword.changes","phrase","\\banything +different\\b"],["keyword.changes","phrase","\\bwhat +happened +today\\b"],["keyword.changes","phrase","\\bsince +last +time\\b"],["keyword.changes","phrase","\\bchanges +today\\b"],["keyword.changes","phrase","\\bchanged +in +the +house\\b"],["keyword.changes","phrase","\\bhouse +since\\b"],["keyword.changes","phrase","\\banything +changed\\b"],["keyword.changes","phrase","\\bwhile +i +was +at +work\\b"],["keyword.changes","phrase","\\bwhile +i\\''ve +been +at +work\\b"],["keyword.changes","phrase","\\bwhile +at +work\\b"],["keyword.changes","phrase","\\bsince +work\\b"],["keyword.changes","phrase","\\bsince +this +morning\\b"],["keyword.changes","phrase","\\bthis +morning +while\\b"],["keyword.changes","phrase","\\bsince +i +left\\b"],["keyword.changes","phrase","\\bsince +i +woke +up\\b"],["keyword.uptime","phrase","\\buptime\\b"],["keyword.uptime","phrase","\\bis +down\\b"],["keyword.uptime","phrase","\\bwhat\\''s +down\\b"],["keyword.uptime","phrase","\\bwhats +down\\b"],["keyword.uptime","phrase","\\bany +outages\\b"],["keyword.uptime","phrase","\\bservice +status\\b"],["keyword.uptime","phrase","\\bnetwork +status\\b"],["keyword.uptime","phrase","\\bare +all +services\\b"],["keyword.uptime","phrase","\\bis +everything +up\\b"],["keyword.uptime","phrase","\\bwhat +is +offline\\b"],["keyword.uptime","phrase","\\bmy +services\\b"],["keyword.uptime","phrase","\\bservices +up\\b"],["keyword.uptime","phrase","\\bservices +down\\b"],["keyword.uptime","phrase","\\banything +down\\b"],["keyword.uptime","phrase","\\beverything +down\\b"],["keyword.uptime","phrase","\\beverything +up\\b"],["keyword.uptime","phrase","\\bnetwork +down\\b"],["keyword.uptime","phrase","\\bnetwork +up\\b"],["keyword.uptime","phrase","\\bwhat\\''s +offline\\b"],["keyword.uptime","phrase","\\bwhats +offline\\b"],["keyword.uptime","phrase","\\banything +offline\\b"],["keyword.uptime","phrase","\\bany +services\\b"],["keyword.uptime","phrase","\\bcheck +services\\b"],["keyword.uptime","phrase","\\bis +my +network\\b"],["keyword.uptime","phrase","\\bis +the +network\\b"],["keyword.uptime","phrase","\\bserver +down\\b"],["keyword.uptime","phrase","\\bserver +up\\b"],["keyword.uptime","phrase","\\bserver +status\\b"],["keyword.uptime","phrase","\\bis +it +running\\b"],["keyword.uptime","phrase","\\bis +it +up\\b"],["keyword.uptime","phrase","\\bis +it +down\\b"],["keyword.uptime","phrase","\\bare +they +up\\b"],["keyword.uptime","phrase","\\bare +they +down\\b"],["keyword.uptime","phrase","\\beverything +online\\b"],["keyword.uptime","phrase","\\bis +everything +online\\b"],["keyword.uptime","phrase","\\banything +online\\b"],["framing.added","phrase","\\beveryone +keeps +talking +about\\b"],["framing.added","phrase","\\beveryone +keeps +talking\\b"],["framing.added","phrase","\\beveryone\\''s +talking +about\\b"],["framing.added","phrase","\\beveryones +talking +about\\b"],["framing.added","phrase","\\beveryone +is +talking +about\\b"],["framing.added","phrase","\\beveryone\\''s +obsessed +with\\b"],["framing.added","phrase","\\beveryones +obsessed +with\\b"],["framing.added","phrase","\\beveryone +is +obsessed +with\\b"]]');
INSERT INTO "profiles" VALUES('7c3dd725f131522a','testing','{}',1794850291494,'[]');
INSERT INTO "profiles" VALUES('bcd72535a9e94163','assist','{"name":"assist","description":"query type, retrieval yes/no, model slot; under a normative contract","routes":["RETRIEVAL","CODE_GENERATION","CONVERSATIONAL","PLATFORM"],"deadline_ms":2500,"fallback":{"route":"RETRIEVAL","confidence":0.5,"held":0.51,"held_by":["student"]},"cases":"cases/assist.jsonl","settings":{"student_threshold":"layers.student.accept.confidence","classifier_timeout_ms":"layers.llm.deadline_ms"},"layers":[{"id":"declared","kind":"declared.v1"},{"id":"rules","kind":"rules.v1","rules":[{"id":"rc-01","route":"PLATFORM","when":{"any":["you are a direct and concise assistant"]},"text":"RC-01: a registered platform phrase"},{"id":"rc-02","route":"PLATFORM","text":"RC-02: usage, quota, billing or other account data","when":[{"patterns":["\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)[^\\n.;!?]{0,60}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[^\\n.;!?]{0,60}\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[\\s:=(]+(?:\\w+\\s+){0,2}[$€£]?\\d","\\b\\d[\\d.,]*\\s+(?:of\\s+)?(?:quotas?|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\s+(?:\\w+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?|consumido)\\b","\\b(?:quotas?|billing|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|facturación|facturacion|cuentas?|créditos?|creditos?|límites?|limites?)\\s+(?:of|for|de|del)\\s+(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\b","\\b(?:do i have|do we have|tengo|tenemos)\\s+(?:\\w+\\s+){0,2}(?:credits?|quotas?|invoices?|créditos?|creditos?|cuotas?|facturas?)\\b","\\b(?:you have|tienes)\\b[^\\n.,;!?]{0,40}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:how many|how much|cuánto|cuánta|cuántos|cuántas|cuanto|cuantos|cuantas)\\s+(?:\\w+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[^\\n.;!?]{0,40}\\b(?:i|we|me|us|tengo|tenemos|queda|quedan|llevo)\\b"]}],"unless":{"patterns":["\\b(?:write|implement|code|create|generate|build|develop|refactor|fix|debug|escribe|escribir|implementa|crea|genera|programa|desarrolla)\\b[^\\n.;!?]{0,60}\\b(?:functions?|methods?|class|scripts?|code|program|query|snippet|tests?|api|endpoint|component|triggers?|función|funciones|métodos?|clase|código|programa|consulta|componente)\\b","\\b(?:functions?|scripts?|program|query|sql|regex|snippet|triggers?|función|programa|consulta)\\s+(?:that|which|to|que|para)\\b","\\b(?:memory|cpu|gpu|ram|heap|disk|network|bandwidth|battery|resource|water|energy)\\s+(?:usage|consumption|limits?)\\b","\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)\\s+(?:less|more|fewer|faster|slower|menos|más)\\b","\\baccounts? for\\b","\\bplans? (?:is|was|are|were) to\\b","\\bplan (?:es|era) \\w+[aei]r\\b","\\b(?:select|offset|order by|where)\\b[^\\n]{0,120}\\blimit\\s+\\d|\\blimit\\s+\\d+\\s*(?:,\\s*\\d|\\soffset\\b)"]}}]},{"id":"student","kind":"student.v1","optional":true,"accept":{"confidence":0.85},"artefact":"ea48a3a2a2a24968"},{"id":"llm","kind":"llm.v1","optional":true,"deadline_ms":2000,"slot":"classifier","history":6,"reply":"label","guide":"Decide what kind of request a message to a programming assistant is. Data about the user''s account, usage, quota or bill is always PLATFORM, whatever came before. Earlier intents never make a kind more likely: they only tell what a word such as \"this\" points to.","describe":{"RETRIEVAL":"a question about a product, a codebase or its documentation that has to be looked up","CODE_GENERATION":"code is to be written, changed or reviewed","CONVERSATIONAL":"small talk, thanks, a follow-up that only rephrases or shortens the last answer","PLATFORM":"the platform itself: account, usage, quota, billing, or instructions the platform sends"}}],"policy":{"RETRIEVAL":{"retrieval":true,"model":"main"},"CODE_GENERATION":{"retrieval":true,"model":"main"},"CONVERSATIONAL":{"retrieval":false,"model":"conversational"},"PLATFORM":{"retrieval":false,"model":"conversational"}},"contract":[{"id":"RC-01","when":{"route":["PLATFORM"],"by":["rules"]},"never":"classifier_called","text":"a registered platform phrase is decided without a classifier"},{"id":"RC-02","when":{"route":["PLATFORM"],"by":["rules"]},"never":"classifier_called","text":"account data is decided without a classifier, whatever history says"},{"id":"RC-03","never":"flipped_by_history","text":"history only resolves references; it never biases the type"},{"id":"RC-04","when":{"route":["PLATFORM","CONVERSATIONAL"]},"never":"retrieval","text":"PLATFORM and CONVERSATIONAL never trigger retrieval"},{"id":"RC-05","when":{"route":["RETRIEVAL","CODE_GENERATION"]},"must":{"model":"main"},"text":"RETRIEVAL and CODE_GENERATION are answered by the main model"},{"id":"RC-05b","when":{"route":["PLATFORM","CONVERSATIONAL"]},"must":{"model":"conversational"},"text":"CONVERSATIONAL and PLATFORM go to the conversational slot, which is main where none is configured"},{"id":"RC-06","at_most":{"classifier_history":6},"text":"the classifier sees at most six entries of a session"}]}',1794850291497,'[["rule.rc-01","phrase","\\byou +are +a +direct +and +concise +assistant\\b"],["rule.rc-02","regex","\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)(?:Z[^\\x00-\\x7f]Z|[^\\n.;!?Z]){0,60}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b"],["rule.rc-02","regex","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b(?:Z[^\\x00-\\x7f]Z|[^\\n.;!?Z]){0,60}\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)"],["rule.rc-02","regex","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b[\\s:=(]+(?:(?:[a-z0-9_]|Z[^\\x00-\\x7f]Z|[฀-໿က-႟ᄀ-ᇿក-៿⺀-⿟々-〇〡-〩〱-〵〸-〼぀-ㇿ㐀-鿿ꥠ-꥿가-퟿豈-﫿ｦ-ￜ𚿰-𛅯𠀀-𿿿])+\\s+){0,2}[$€£]?\\d"],["rule.rc-02","regex","\\b\\d[\\d.,]*\\s+(?:of\\s+)?(?:quotas?|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b"],["rule.rc-02","regex","\\b(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\s+(?:(?:[a-z0-9_]|Z[^\\x00-\\x7f]Z|[฀-໿က-႟ᄀ-ᇿក-៿⺀-⿟々-〇〡-〩〱-〵〸-〼぀-ㇿ㐀-鿿ꥠ-꥿가-퟿豈-﫿ｦ-ￜ𚿰-𛅯𠀀-𿿿])+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?|consumido)\\b"],["rule.rc-02","regex","\\b(?:quotas?|billing|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\s+(?:of|for|de|del)\\s+(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\b"],["rule.rc-02","regex","\\b(?:do i have|do we have|tengo|tenemos)\\s+(?:(?:[a-z0-9_]|Z[^\\x00-\\x7f]Z|[฀-໿က-႟ᄀ-ᇿក-៿⺀-⿟々-〇〡-〩〱-〵〸-〼぀-ㇿ㐀-鿿ꥠ-꥿가-퟿豈-﫿ｦ-ￜ𚿰-𛅯𠀀-𿿿])+\\s+){0,2}(?:credits?|quotas?|invoices?|cr(?:ZéZ)ditos?|creditos?|cuotas?|facturas?)\\b"],["rule.rc-02","regex","\\b(?:you have|tienes)\\b(?:Z[^\\x00-\\x7f]Z|[^\\n.,;!?Z]){0,40}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b"],["rule.rc-02","regex","\\b(?:how many|how much|cu(?:ZáZ)nto|cu(?:ZáZ)nta|cu(?:ZáZ)ntos|cu(?:ZáZ)ntas|cuanto|cuantos|cuantas)\\s+(?:(?:[a-z0-9_]|Z[^\\x00-\\x7f]Z|[฀-໿က-႟ᄀ-ᇿក-៿⺀-⿟々-〇〡-〩〱-〵〸-〼぀-ㇿ㐀-鿿ꥠ-꥿가-퟿豈-﫿ｦ-ￜ𚿰-𛅯𠀀-𿿿])+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturaci(?:ZóZ)n|facturacion|consumo|cuentas?|cr(?:ZéZ)ditos?|creditos?|l(?:ZíZ)mites?|limites?)\\b(?:Z[^\\x00-\\x7f]Z|[^\\n.;!?Z]){0,40}\\b(?:i|we|me|us|tengo|tenemos|queda|quedan|llevo)\\b"],["rule.rc-02","regex","\\b(?:write|implement|code|create|generate|build|develop|refactor|fix|debug|escribe|escribir|implementa|crea|genera|programa|desarrolla)\\b(?:Z[^\\x00-\\x7f]Z|[^\\n.;!?Z]){0,60}\\b(?:functions?|methods?|class|scripts?|code|program|query|snippet|tests?|api|endpoint|component|triggers?|funci(?:ZóZ)n|funciones|m(?:ZéZ)todos?|clase|c(?:ZóZ)digo|programa|consulta|componente)\\b"],["rule.rc-02","regex","\\b(?:functions?|scripts?|program|query|sql|regex|snippet|triggers?|funci(?:ZóZ)n|programa|consulta)\\s+(?:that|which|to|que|para)\\b"],["rule.rc-02","regex","\\b(?:memory|cpu|gpu|ram|heap|disk|network|bandwidth|battery|resource|water|energy)\\s+(?:usage|consumption|limits?)\\b"],["rule.rc-02","regex","\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)\\s+(?:less|more|fewer|faster|slower|menos|m(?:ZáZ)s)\\b"],["rule.rc-02","regex","\\baccounts? for\\b"],["rule.rc-02","regex","\\bplans? (?:is|was|are|were) to\\b"],["rule.rc-02","regex","\\bplan (?:es|era) (?:[a-z0-9_]|Z[^\\x00-\\x7f]Z|[฀-໿က-႟ᄀ-ᇿក-៿⺀-⿟々-〇〡-〩〱-〵〸-〼぀-ㇿ㐀-鿿ꥠ-꥿가-퟿豈-﫿ｦ-ￜ𚿰-𛅯𠀀-𿿿])+[aei]r\\b"],["rule.rc-02","regex","\\b(?:select|offset|order by|where)\\b(?:Z[^\\x00-\\x7f]Z|[^\\nZ]){0,120}\\blimit\\s+\\d|\\blimit\\s+\\d+\\s*(?:,\\s*\\d|\\soffset\\b)"]]');
CREATE TABLE replies (
  id text primary key,
  tenant text not null,
  session text not null,
  decision_id text,
  role text not null,
  text text,
  kept text not null,
  created_ms bigint not null
);
INSERT INTO "replies" VALUES('01M7JPKZRQ9YV71Z2YS9W4G600','','s','01M7JPKZPG9YV71Z2YS9W4G302','assistant','an answer; with ''quotes''
and two lines','full',1794850291479);
INSERT INTO "replies" VALUES('01M7JPKZS99YV71Z2YS9W4G801','acme','s','01M7JPKZ3K9YV71Z2YS9W4G100','assistant','an answer; with ''quotes''
and two lines','full',1794850291497);
CREATE TABLE schema_version (
  number integer primary key,
  name text not null,
  checksum text not null,
  applied_ms bigint not null
);
INSERT INTO "schema_version" VALUES(1,'decisions','b481df356629d0b26ac189e669ce15dc12aebec389c8074685dcb549925cd223',1750000000000);
INSERT INTO "schema_version" VALUES(2,'views','9a6977eed3e73ef7ea62cad9b45de4df3912779e9ffe2da484c4e340fbf05b8a',1750000000000);
INSERT INTO "schema_version" VALUES(3,'retention','37d2d804fa122d84cd773d7c0b73447019a8c86a301d3fa002a10d480870d2a0',1750000000000);
INSERT INTO "schema_version" VALUES(4,'keys','da4ad24358621f446d9ede5813fd6317e582ff9983a6b36e364a328ce96cda5a',1750000000000);
INSERT INTO "schema_version" VALUES(5,'key_rows','d1834840a3c3c93e847acc25fae1c3373ddba98ba665e67422b1c6ecd8b7f4f5',1750000000000);
INSERT INTO "schema_version" VALUES(6,'patterns','a98ee820ab617ca704bb4024c0c11db96d9700b953c0f9066d1c9db63a76a209',1750000000000);
INSERT INTO "schema_version" VALUES(7,'cache','3609241b05b6885649568cf36d4dba9129417b682b3e6be02b75c0d3baf62303',1750000000000);
INSERT INTO "schema_version" VALUES(8,'study','aaadc9abde46aeb67f3b55d6d7b911f9ba240649bc6971983cfaba5bfc483267',1750000000000);
INSERT INTO "schema_version" VALUES(9,'cards','417c4d45e69ec9efe43a5e5f28d9082802ee40653a7c1255b18361fcf95498f9',1750000000000);
INSERT INTO "schema_version" VALUES(10,'filters','a29fb6f0b62104ad5735b37fbb7e0405a59edfa7fbc0e019a864dfc1fbcddbbe',1750000000000);
INSERT INTO "schema_version" VALUES(11,'traffic','80d55bd24df53968bbdb27f5ada2738f31da03e7d0b573dc0d69cae7fc49c07a',1750000000000);
CREATE TABLE spending (
  decision_id text primary key,
  key_id text not null,
  amount_usd double precision not null,
  created_ms bigint not null
);
INSERT INTO "spending" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','k1',0.25,1794850291521);
CREATE TABLE spent_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  profile_hash text not null,
  slot text,
  model text,
  ended text not null,
  answers bigint not null,
  attempts bigint,
  input_tokens bigint,
  output_tokens bigint,
  cost_usd double precision,
  classifier_usd double precision,
  compared bigint not null,
  baseline_usd double precision,
  compared_usd double precision,
  fallbacks bigint not null,
  priced bigint not null,
  regretted bigint not null
);
CREATE TABLE store_settings (
  name text primary key,
  setting text not null
);
INSERT INTO "store_settings" VALUES('digest_key','cf8418a58d6b5796f6940ce19f06ad0364558252ca5061d70c4c2f7295b258c8');
CREATE TABLE study_sessions (
  id text primary key,
  tenant text not null,
  name text not null,
  started_ms bigint not null,
  last_ms bigint not null,
  ended_ms bigint,
  summary text
);
INSERT INTO "study_sessions" VALUES('01M7JPKZT19YV71Z2YS9W4GA00','acme','s',1,2,3,'Entropy.');
CREATE TABLE study_turns (
  id text primary key,
  tenant text not null,
  session_id text not null,
  question text not null,
  answer text not null,
  route text not null,
  created_ms bigint not null
);
INSERT INTO "study_turns" VALUES('01M7JPKZ3K9YV71Z2YS9W4G100','acme','01M7JPKZT19YV71Z2YS9W4GA00','Define entropy','Disorder.','standalone_definition',2);
CREATE TABLE traffic_hours (
  tenant text not null,
  hour_ms bigint not null,
  key_id text not null,
  profile text not null,
  profile_hash text not null,
  decided_by text not null,
  outcome text not null,
  route text not null,
  decisions bigint not null
);
CREATE INDEX decisions_by_tenant on decisions (tenant, id);
CREATE INDEX decisions_by_session on decisions (tenant, session, id) where session is not null;
CREATE INDEX decisions_by_parent on decisions (tenant, parent_id, id) where parent_id is not null;
CREATE INDEX outcomes_by_tenant on outcomes (tenant, decision_id);
CREATE INDEX feedback_by_decision on feedback (tenant, decision_id, id);
CREATE INDEX breaches_by_tenant on breaches (tenant, created_ms);
CREATE INDEX replies_by_session on replies (tenant, session, id);
CREATE VIEW router_decisions as
select
  d.id,
  d.tenant,
  d.profile,
  d.question as question_text,
  json_extract(o.extra, '$.reformulated_question') as reformulated_question,
  json_extract(o.extra, '$.conversation_context') as conversation_context,
  d.route as mode_selected,
  json_extract(o.extra, '$.claim_cards_referenced') as claim_cards_referenced,
  json_extract(o.extra, '$.search_candidates') as search_candidates,
  (
    select group_concat(coalesce(nullif(json_extract(value, '$.text'), ''), json_extract(value, '$.code')), '; ')
    from json_each(d.body, '$.reasons')
  ) as reasoning,
  coalesce(o.elapsed_ms, d.elapsed_us / 1000.0) as response_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', d.created_ms / 1000.0, 'unixepoch') as created_at
from decisions d
left join outcomes o on o.decision_id = d.id
where d.parent_id is null;
CREATE VIEW traffic_by_layer as
select
  date(created_ms / 1000, 'unixepoch') as day,
  tenant,
  profile,
  decided_by as layer,
  substr(outcome, 1, 1) as who,
  count(*) as decisions,
  round(100.0 * count(*) / sum(count(*)) over (
    partition by date(created_ms / 1000, 'unixepoch'), tenant, profile
  ), 1) as percent,
  round(avg(elapsed_us), 1) as mean_us
from decisions
where parent_id is null
group by day, tenant, profile, decided_by, who
order by day, tenant, profile, decisions desc;
CREATE VIEW violations as
select
  strftime('%Y-%m-%dT%H:%M:%fZ', b.created_ms / 1000.0, 'unixepoch') as noticed_at,
  b.tenant,
  b.profile,
  b.rule,
  b.fact,
  b.found,
  b.explanation,
  b.phase,
  b.decision_id,
  d.route,
  d.decided_by,
  d.question
from breaches b
left join decisions d on d.id = b.decision_id;
CREATE VIEW turns as
select id, tenant, session, 'user' as role, question as text, kept, id as decision_id, created_ms
from decisions
where session is not null and parent_id is null
union all
select id, tenant, session, role, text, kept, decision_id, created_ms
from replies;
CREATE VIEW classify_history as
select
  d.tenant,
  d.session,
  d.id as decision_id,
  d.route,
  substr(d.question, 1, 60) as topic,
  d.question,
  d.teacher,
  (
    select case f.verdict when 'right' then d.route else f.should_be end
    from feedback f
    where f.decision_id = d.id and f.tenant = d.tenant
    order by f.id desc
    limit 1
  ) as human,
  strftime('%Y-%m-%dT%H:%M:%fZ', d.created_ms / 1000.0, 'unixepoch') as created_at
from decisions d
where d.session is not null and d.parent_id is null;
CREATE INDEX decisions_with_text on decisions (id) where kept in ('snippet', 'full');
CREATE INDEX replies_with_text on replies (id) where kept in ('snippet', 'full');
CREATE INDEX spending_by_key on spending (key_id, created_ms);
CREATE INDEX cache_entries_by_age on cache_entries (space, created_ms);
CREATE INDEX cache_entries_by_tenant on cache_entries (tenant, space);
CREATE INDEX study_sessions_by_name on study_sessions (tenant, name, id);
CREATE INDEX study_turns_by_session on study_turns (tenant, session_id, id);
CREATE INDEX claim_cards_by_age on claim_cards (created_ms, id);
CREATE INDEX decisions_by_kind
on decisions (tenant, key_id, profile, routes, decided_by, outcome, id, created_ms)
where parent_id is null and length(routes) <= 200;
CREATE INDEX decisions_of_many_routes on decisions (tenant, id) where parent_id is null and length(routes) > 200;
CREATE INDEX traffic_hours_by_key on traffic_hours (tenant, key_id, hour_ms);
CREATE INDEX latency_hours_by_key on latency_hours (tenant, key_id, hour_ms);
CREATE INDEX spent_hours_by_key on spent_hours (tenant, key_id, hour_ms);
CREATE INDEX key_hours_by_tenant on key_hours (tenant, hour_ms);
CREATE INDEX key_hours_by_hour on key_hours (hour_ms);
CREATE INDEX traffic_hours_by_hour on traffic_hours (hour_ms);
CREATE INDEX latency_hours_by_hour on latency_hours (hour_ms);
CREATE INDEX spent_hours_by_hour on spent_hours (hour_ms);
COMMIT;
