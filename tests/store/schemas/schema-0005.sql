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
INSERT INTO "breaches" VALUES('01M7GNTR4EA5523KTJ0R866T00','acme','assist','RC-01','classifier_called','true','classifier_called must never be true for PLATFORM','decision',1794782355630);
INSERT INTO "breaches" VALUES('01M7GNTR4EA5523KTJ0R866T00','acme','assist','RC-02','classifier_called','true','classifier_called must never be true for PLATFORM','decision',1794782355630);
INSERT INTO "breaches" VALUES('01M7GNTR4EA5523KTJ0R866T00','acme','assist','RC-04','retrieval','true','retrieval must never be true for PLATFORM','outcome',1794782355630);
INSERT INTO "breaches" VALUES('01M7GNTR4EA5523KTJ0R866T00','acme','assist','RC-05b','model','"main"','model must be ''conversational'' for PLATFORM','outcome',1794782355630);
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
INSERT INTO "decisions" VALUES('01M7GNTR4RA5523KTJ0R866V00',NULL,'',NULL,'study','e11cb5ee79a31d2f','standalone_definition','["standalone_definition"]',9.3925182330394485497e-01,'local','S-',NULL,110.915,1794782355620,'Define entropy',NULL,'full',NULL,'{"id":"01M7GNTR4RA5523KTJ0R866V00","profile":"study","profile_hash":"e11cb5ee79a31d2f","route":"standalone_definition","routes":["standalone_definition"],"confidence":0.9392518233039449,"calibrated":false,"margin":0.3760000000000001,"by":"local","outcome":"S-","reasons":[{"code":"signals.definition","text":"definition (define)"}],"policy":{"image":false,"history":false,"history_turns":0,"memory":false,"notes":false,"max_sentences":2,"instruction":"Return a direct standalone definition in at most two sentences. Do not reference the page unless explicitly asked."},"scores":{"standalone_definition":0.6160000000000001,"page_grounded_definition":0.0,"general_contextual":0.24},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"local","kind":"signals.v1","ended":"accepted","elapsed_us":48.482,"gate":{"confidence":0.75,"margin":0.2},"verdict":{"routes":["standalone_definition"],"confidence":0.9392518233039449,"margin":0.3760000000000001,"scores":{"standalone_definition":0.6160000000000001,"page_grounded_definition":0.0,"general_contextual":0.24},"decisive":false}}],"parts":[],"elapsed_us":110.915}','');
INSERT INTO "decisions" VALUES('01M7GNTR53A5523KTJ0R866W02',NULL,'','s','sources','a1e428a849760c8b','forecast','["forecast","web"]',1.0,'parts','K-',NULL,846.566,1794782355626,'What is the weather tomorrow and who won the match yesterday?',NULL,'full',NULL,'{"id":"01M7GNTR53A5523KTJ0R866W02","profile":"sources","profile_hash":"a1e428a849760c8b","route":"forecast","routes":["forecast","web"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"parts","outcome":"K-","reasons":[{"code":"split.parts","text":"2 parts, each decided on its own"}],"policy":{"sources":["forecast","web"]},"scores":{},"trace":[],"parts":[{"id":"01M7GNTR53A5523KTJ0R866W00","profile":"sources","profile_hash":"a1e428a849760c8b","route":"forecast","routes":["forecast"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"keywords","outcome":"K-","reasons":[{"code":"keyword.forecast","text":"forecast (weather, tomorrow)"}],"policy":{"sources":["forecast"]},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"keywords","kind":"keywords.v1","ended":"accepted","elapsed_us":9.795,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["forecast"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":9.795,"role":"part","text":"What is the weather tomorrow"},{"id":"01M7GNTR53A5523KTJ0R866W01","profile":"sources","profile_hash":"a1e428a849760c8b","route":"web","routes":["web"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"keywords","outcome":"K-","reasons":[{"code":"keyword.web","text":"web (who won)"}],"policy":{"sources":["web"]},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"keywords","kind":"keywords.v1","ended":"accepted","elapsed_us":3.134,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["web"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":3.134,"role":"part","text":"who won the match yesterday?"}],"elapsed_us":846.566}','');
INSERT INTO "decisions" VALUES('01M7GNTR53A5523KTJ0R866W00','01M7GNTR53A5523KTJ0R866W02','','s','sources','a1e428a849760c8b','forecast','["forecast"]',1.0,'keywords','K-',NULL,9.795,1794782355626,'What is the weather tomorrow',NULL,'full',NULL,'{"id":"01M7GNTR53A5523KTJ0R866W00","profile":"sources","profile_hash":"a1e428a849760c8b","route":"forecast","routes":["forecast"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"keywords","outcome":"K-","reasons":[{"code":"keyword.forecast","text":"forecast (weather, tomorrow)"}],"policy":{"sources":["forecast"]},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"keywords","kind":"keywords.v1","ended":"accepted","elapsed_us":9.795,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["forecast"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":9.795,"role":"part","text":"What is the weather tomorrow"}','');
INSERT INTO "decisions" VALUES('01M7GNTR53A5523KTJ0R866W01','01M7GNTR53A5523KTJ0R866W02','','s','sources','a1e428a849760c8b','web','["web"]',1.0,'keywords','K-',NULL,3.134,1794782355626,'who won the match yesterday?',NULL,'full',NULL,'{"id":"01M7GNTR53A5523KTJ0R866W01","profile":"sources","profile_hash":"a1e428a849760c8b","route":"web","routes":["web"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"keywords","outcome":"K-","reasons":[{"code":"keyword.web","text":"web (who won)"}],"policy":{"sources":["web"]},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"keywords","kind":"keywords.v1","ended":"accepted","elapsed_us":3.134,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["web"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":3.134,"role":"part","text":"who won the match yesterday?"}','');
INSERT INTO "decisions" VALUES('01M7GNTR54A5523KTJ0R866X00',NULL,'',NULL,'testing','3356b054ecf7a62b','second','["second"]',0.9,'llm','L-','second',190.763,1794782355628,'a question a model was asked',NULL,'full',NULL,'{"id":"01M7GNTR54A5523KTJ0R866X00","profile":"testing","profile_hash":"3356b054ecf7a62b","route":"second","routes":["second"],"confidence":0.9,"calibrated":false,"margin":0.0,"by":"llm","outcome":"L-","reasons":[],"policy":{},"scores":{},"trace":[{"layer":"llm","kind":"testing.v1","ended":"accepted","elapsed_us":102.673,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["second"],"confidence":0.9,"margin":0.0,"scores":{},"decisive":false}}],"parts":[],"elapsed_us":190.763}','');
INSERT INTO "decisions" VALUES('01M7GNTR4EA5523KTJ0R866T00',NULL,'acme','s','assist','c61bbd60a4c9bf20','PLATFORM','["PLATFORM"]',1.0,'rules','R-','RETRIEVAL',398.331,1794782355630,'You are a direct and concise assistant',NULL,'full',NULL,'{"id":"01M7GNTR4EA5523KTJ0R866T00","profile":"assist","profile_hash":"c61bbd60a4c9bf20","route":"PLATFORM","routes":["PLATFORM"],"confidence":1.0,"calibrated":false,"margin":0.0,"by":"rules","outcome":"R-","reasons":[{"code":"rule.rc-01","text":"RC-01: a registered platform phrase"}],"policy":{"retrieval":false,"model":"conversational"},"scores":{},"trace":[{"layer":"declared","kind":"declared.v1","ended":"passed","elapsed_us":0.0},{"layer":"rules","kind":"rules.v1","ended":"accepted","elapsed_us":10.776,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["PLATFORM"],"confidence":1.0,"margin":0.0,"scores":{},"decisive":true}},{"layer":"llm","kind":"testing.v1","ended":"held","elapsed_us":1.0,"gate":{"confidence":0.0,"margin":0.0},"verdict":{"routes":["RETRIEVAL"],"confidence":0.9,"margin":0.0,"scores":{},"decisive":false},"reasons":[{"code":"gate.held","text":"below the gate: confidence 0.90 (needs 0.00)"}]}],"parts":[],"elapsed_us":398.331}','');
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
INSERT INTO "feedback" VALUES('01M7GNTR56A5523KTJ0R866Y00','01M7GNTR4RA5523KTJ0R866V00','','wrong',NULL,'me','no: 100 %',1794782355622);
INSERT INTO "feedback" VALUES('01M7GNTR5CA5523KTJ0R867000','01M7GNTR53A5523KTJ0R866W02','','wrong',NULL,'me','no: 100 %',1794782355628);
INSERT INTO "feedback" VALUES('01M7GNTR5DA5523KTJ0R867100','01M7GNTR54A5523KTJ0R866X00','','wrong',NULL,'me','no: 100 %',1794782355629);
INSERT INTO "feedback" VALUES('01M7GNTR5FA5523KTJ0R867300','01M7GNTR4EA5523KTJ0R866T00','acme','wrong',NULL,'me','no: 100 %',1794782355631);
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
INSERT INTO "outcomes" VALUES('01M7GNTR4RA5523KTJ0R866V00','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794782355621);
INSERT INTO "outcomes" VALUES('01M7GNTR53A5523KTJ0R866W02','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794782355627);
INSERT INTO "outcomes" VALUES('01M7GNTR54A5523KTJ0R866X00','','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794782355628);
INSERT INTO "outcomes" VALUES('01M7GNTR4EA5523KTJ0R866T00','acme','answered','main',NULL,NULL,NULL,NULL,0.25,NULL,NULL,1,NULL,NULL,NULL,'["web"]','{"n":1}',1794782355630);
CREATE TABLE profiles (
  hash text primary key,
  name text not null,
  resolved json not null,
  created_ms bigint not null
);
INSERT INTO "profiles" VALUES('e11cb5ee79a31d2f','study','{"name":"study","description":"which context a question gets (image, history, memory, notes) and how long the answer may be","routes":["standalone_definition","page_grounded_definition","general_contextual"],"deadline_ms":400,"cases":"cases/study.jsonl","fallback":{"route":"standalone_definition","confidence":0.5},"off":{"route":"general_contextual"},"blank":{"route":"general_contextual"},"settings":{"enable_query_router":"enabled","router_local_confidence_threshold":"layers.local.accept.confidence","router_local_margin_threshold":"layers.local.accept.margin","router_model":"layers.llm.model","router_timeout_ms":"layers.llm.deadline_ms","router_max_tokens":"layers.llm.max_tokens","router_llm_confidence_threshold":"layers.llm.accept.confidence","router_fallback_mode":"fallback.route"},"layers":[{"id":"declared","kind":"declared.v1","aliases":{"standalone":"standalone_definition","definition":"standalone_definition","page_grounded":"page_grounded_definition","page_definition":"page_grounded_definition","contextual":"general_contextual","general":"general_contextual"}},{"id":"local","kind":"signals.v1","accept":{"confidence":0.75,"margin":0.2},"signals":[{"id":"definition","words":["define","definition","what is","what''s","who is","meaning"],"ordered":[["what does","mean"],["explain what","means"]]},{"id":"explain","words":["explain"]},{"id":"concision","words":["very concisely","concisely","briefly","in short","quickly","quick summary"]},{"id":"doc_ref","label":"document","words":["page","paper","book","text","paragraph","section","definition","figure","table","equation","line","column","caption","graph","chart"]},{"id":"deictic","words":["this","that","here","there","above","below"]},{"id":"spatial","words":["left","right","far right","far left","top","bottom","upper","lower","middle","center"]},{"id":"on_page","label":"place on the page","patterns":["\\b(?:on|in|from)\\s+the\\s+(?:[a-z]+\\s+){0,3}(?:page|paragraph|section|figure|table|equation|left|right|top|bottom)\\b"]},{"id":"general","label":"open question","words":["summarize","walk me through","what is happening","what does this section mean","what does that section mean"]}],"ranking":{"sums":{"definition":{"definition":0.55,"explain":0.18,"concision":0.16},"page":{"doc_ref":0.3,"deictic":0.22,"spatial":0.25,"on_page":0.24},"contextual":{"general":0.44,"deictic":0.16,"doc_ref":0.1}},"base":{"contextual":0.24},"routes":{"standalone_definition":[{"add":1.12,"of":"definition"},{"add":-0.68,"of":"page"},{"add":0.08,"when":["concision"]}],"page_grounded_definition":[{"add":1.0,"of":"page"},{"add":1.25,"of":"definition","above":0.6},{"add":0.22,"when":["spatial","doc_ref"]}],"general_contextual":[{"add":1.0,"of":"contextual"},{"add":0.7,"of":"page"},{"add":-0.16,"when_sum":{"definition":0.75,"page":0.35}}]},"floors":[{"route":"page_grounded_definition","when":["spatial","doc_ref"],"confidence":0.86}]}},{"id":"llm","kind":"llm.v1","optional":true,"accept":{"confidence":0.7},"deadline_ms":350,"max_tokens":80,"slot":"router","reply":"json","guide":"A reader asks about the page in front of them, or about something else. Decide which context the answer needs. Examples:\n\"Define macroeconomics very concisely\" is standalone_definition.\n\"Explain what complexity means in the definition on the far right\" is page_grounded_definition.\n\"What does this section mean?\" is general_contextual.","aliases":{"standalone":"standalone_definition","definition":"standalone_definition","page_grounded":"page_grounded_definition","page_definition":"page_grounded_definition","contextual":"general_contextual","general":"general_contextual"},"describe":{"standalone_definition":"a term is to be defined on its own; the page is not needed","page_grounded_definition":"a term or passage is to be explained as it stands on the page: it names a place on the page, or says that the context there matters","general_contextual":"anything else: the page, the conversation so far or the reader''s notes may matter"}}],"policy":{"standalone_definition":{"image":false,"history":false,"history_turns":0,"memory":false,"notes":false,"max_sentences":2,"instruction":"Return a direct standalone definition in at most two sentences. Do not reference the page unless explicitly asked."},"page_grounded_definition":{"image":true,"history":true,"history_turns":2,"memory":false,"notes":false,"max_sentences":2,"instruction":"Answer the definition request using the relevant page location. Keep the answer to at most two sentences."},"general_contextual":{"image":true,"history":true,"history_turns":0,"memory":true,"notes":true}}}',1794782355620);
INSERT INTO "profiles" VALUES('a1e428a849760c8b','sources','{"name":"sources","description":"which knowledge source(s) answer, after splitting compound and conditional questions","routes":["kiwix","forecast","news","web","ha","changes","uptime","files"],"deadline_ms":10000,"fallback":{"route":"kiwix","confidence":0.5},"cases":"cases/sources.jsonl","split":{"compound":true,"conditions":true},"settings":{"default_source":"fallback.route","router_timeout_ms":"layers.llm.deadline_ms"},"layers":[{"id":"declared","kind":"declared.v1","nothing":["auto"]},{"id":"keywords","kind":"keywords.v1","phrases":{"forecast":["forecast","weather","tomorrow","this weekend","later today","will it rain","will it snow","high temp","low temp","precipitation","wind forecast","going to be hot","going to be cold","is it raining","it is raining|it''s raining|it rains|it rain","is it snowing","it is snowing|it''s snowing|it snows|it snow","is it going to rain","going to rain","is it going to snow","going to snow"],"news":["news","headlines","feeds","rss","recent articles","my feeds"],"web":["search the web","google","look it up online","current events","web search","find online","who won","search online"],"ha":["which lights are on","lights on","lights off","lights are on","lights are off","lights status","house status","home status","house summary","are the doors locked","door locked","doors locked","door is locked","doors are locked","door unlocked","doors unlocked","door is unlocked","doors are unlocked","door open","doors open","door is open","doors are open","door closed","doors closed","door is closed","doors are closed","garage door","garage","indoor air","air quality","indoor sensors","how much power","power consumption","energy usage","battery status","battery levels","low battery","any motion","recent motion","motion detected","security status","house secure","outdoor conditions","outside conditions"],"changes":["what changed","any changes","whats new","what''s new","any new outages","new outages","any outages today","weather change","forecast change","new articles","new news","new headlines","anything different","what happened today","since last time","changes today","changed in the house","house since","anything changed","while i was at work","while i''ve been at work","while at work","since work","since this morning","this morning while","since i left","since i woke up"],"uptime":["uptime","is down","what''s down","whats down","any outages","service status","network status","are all services","is everything up","what is offline","my services","services up","services down","anything down","everything down","everything up","network down","network up","what''s offline","whats offline","anything offline","any services","check services","is my network","is the network","server down","server up","server status","is it running","is it up","is it down","are they up","are they down","everything online","is everything online","anything online"]}},{"id":"llm","kind":"llm.v1","optional":true,"deadline_ms":10000,"max_tokens":30,"slot":"router","most":3,"reply":"labels","guide":"Decide which knowledge source answers a question: usually one; two or three only where it really needs them together.","describe":{"kiwix":"an offline encyclopedia: facts, people, places, history, science, how things work","forecast":"the weather, now and in the coming days","news":"the user''s news feeds","web":"a web search: recent events, products, anything the others do not have","ha":"the user''s smart home: lights, doors, sensors, energy","changes":"what has changed since the user last looked","uptime":"whether the user''s services and servers are up","files":"the user''s own documents"}}],"adjust":[{"id":"framing","kind":"framing.v1","route":"kiwix"}],"policy":{"kiwix":{"sources":["kiwix"]},"forecast":{"sources":["forecast"]},"news":{"sources":["news"]},"web":{"sources":["web"]},"ha":{"sources":["ha"]},"changes":{"sources":["changes"]},"uptime":{"sources":["uptime"]},"files":{"sources":["files"]}}}',1794782355626);
INSERT INTO "profiles" VALUES('3356b054ecf7a62b','testing','{}',1794782355628);
INSERT INTO "profiles" VALUES('c61bbd60a4c9bf20','assist','{"name":"assist","description":"query type, retrieval yes/no, model slot; under a normative contract","routes":["RETRIEVAL","CODE_GENERATION","CONVERSATIONAL","PLATFORM"],"deadline_ms":2500,"fallback":{"route":"RETRIEVAL","confidence":0.5},"cases":"cases/assist.jsonl","settings":{"student_threshold":"layers.student.accept.confidence","classifier_timeout_ms":"layers.llm.deadline_ms"},"layers":[{"id":"declared","kind":"declared.v1"},{"id":"rules","kind":"rules.v1","rules":[{"id":"rc-01","route":"PLATFORM","when":{"any":["you are a direct and concise assistant"]},"text":"RC-01: a registered platform phrase"},{"id":"rc-02","route":"PLATFORM","text":"RC-02: usage, quota, billing or other account data","when":[{"patterns":["\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)[^\\n.;!?]{0,60}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[^\\n.;!?]{0,60}\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)","\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[\\s:=(]+(?:\\w+\\s+){0,2}[$€£]?\\d","\\b\\d[\\d.,]*\\s+(?:of\\s+)?(?:quotas?|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\s+(?:\\w+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?|consumido)\\b","\\b(?:quotas?|billing|plans?|accounts?|credits?|invoices?|limits?|cuotas?|facturas?|facturación|facturacion|cuentas?|créditos?|creditos?|límites?|limites?)\\s+(?:of|for|de|del)\\s+(?:my|our|your|mi|mis|tu|tus|nuestro|nuestra|nuestros|nuestras)\\b","\\b(?:do i have|do we have|tengo|tenemos)\\s+(?:\\w+\\s+){0,2}(?:credits?|quotas?|invoices?|créditos?|creditos?|cuotas?|facturas?)\\b","\\b(?:you have|tienes)\\b[^\\n.,;!?]{0,40}\\b(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b","\\b(?:how many|how much|cuánto|cuánta|cuántos|cuántas|cuanto|cuantos|cuantas)\\s+(?:\\w+\\s+){0,2}(?:usage|quotas?|billing|plans?|accounts?|credits?|consumption|invoices?|limits?|uso|cuotas?|facturas?|facturación|facturacion|consumo|cuentas?|créditos?|creditos?|límites?|limites?)\\b[^\\n.;!?]{0,40}\\b(?:i|we|me|us|tengo|tenemos|queda|quedan|llevo)\\b"]}],"unless":{"patterns":["\\b(?:write|implement|code|create|generate|build|develop|refactor|fix|debug|escribe|escribir|implementa|crea|genera|programa|desarrolla)\\b[^\\n.;!?]{0,60}\\b(?:functions?|methods?|class|scripts?|code|program|query|snippet|tests?|api|endpoint|component|triggers?|función|funciones|métodos?|clase|código|programa|consulta|componente)\\b","\\b(?:functions?|scripts?|program|query|sql|regex|snippet|triggers?|función|programa|consulta)\\s+(?:that|which|to|que|para)\\b","\\b(?:memory|cpu|gpu|ram|heap|disk|network|bandwidth|battery|resource|water|energy)\\s+(?:usage|consumption|limits?)\\b","\\b\\d[\\d.,]*\\s*(?:%|percent\\b|por ciento\\b)\\s+(?:less|more|fewer|faster|slower|menos|más)\\b","\\baccounts? for\\b","\\bplans? (?:is|was|are|were) to\\b","\\bplan (?:es|era) \\w+[aei]r\\b","\\b(?:select|offset|order by|where)\\b[^\\n]{0,120}\\blimit\\s+\\d|\\blimit\\s+\\d+\\s*(?:,\\s*\\d|\\soffset\\b)"]}}]},{"id":"student","kind":"student.v1","optional":true,"accept":{"confidence":0.85},"artefact":"be42724b80b3abcb"},{"id":"llm","kind":"llm.v1","optional":true,"deadline_ms":2000,"slot":"classifier","history":6,"reply":"label","guide":"Decide what kind of request a message to a programming assistant is. Data about the user''s account, usage, quota or bill is always PLATFORM, whatever came before. Earlier intents never make a kind more likely: they only tell what a word such as \"this\" points to.","describe":{"RETRIEVAL":"a question about a product, a codebase or its documentation that has to be looked up","CODE_GENERATION":"code is to be written, changed or reviewed","CONVERSATIONAL":"small talk, thanks, a follow-up that only rephrases or shortens the last answer","PLATFORM":"the platform itself: account, usage, quota, billing, or instructions the platform sends"}}],"policy":{"RETRIEVAL":{"retrieval":true,"model":"main"},"CODE_GENERATION":{"retrieval":true,"model":"main"},"CONVERSATIONAL":{"retrieval":false,"model":"conversational"},"PLATFORM":{"retrieval":false,"model":"conversational"}},"contract":[{"id":"RC-01","when":{"route":["PLATFORM"],"by":["rules"]},"never":"classifier_called","text":"a registered platform phrase is decided without a classifier"},{"id":"RC-02","when":{"route":["PLATFORM"],"by":["rules"]},"never":"classifier_called","text":"account data is decided without a classifier, whatever history says"},{"id":"RC-03","never":"flipped_by_history","text":"history only resolves references; it never biases the type"},{"id":"RC-04","when":{"route":["PLATFORM","CONVERSATIONAL"]},"never":"retrieval","text":"PLATFORM and CONVERSATIONAL never trigger retrieval"},{"id":"RC-05","when":{"route":["RETRIEVAL","CODE_GENERATION"]},"must":{"model":"main"},"text":"RETRIEVAL and CODE_GENERATION are answered by the main model"},{"id":"RC-05b","when":{"route":["PLATFORM","CONVERSATIONAL"]},"must":{"model":"conversational"},"text":"CONVERSATIONAL and PLATFORM go to the conversational slot, which is main where none is configured"},{"id":"RC-06","at_most":{"classifier_history":6},"text":"the classifier sees at most six entries of a session"}]}',1794782355630);
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
INSERT INTO "replies" VALUES('01M7GNTR5BA5523KTJ0R866Z00','','s','01M7GNTR53A5523KTJ0R866W02','assistant','an answer; with ''quotes''
and two lines','full',1794782355627);
INSERT INTO "replies" VALUES('01M7GNTR5EA5523KTJ0R867200','acme','s','01M7GNTR4EA5523KTJ0R866T00','assistant','an answer; with ''quotes''
and two lines','full',1794782355630);
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
CREATE TABLE spending (
  decision_id text primary key,
  key_id text not null,
  amount_usd double precision not null,
  created_ms bigint not null
);
INSERT INTO "spending" VALUES('01M7GNTR4EA5523KTJ0R866T00','k1',0.25,1794782355632);
CREATE TABLE store_settings (
  name text primary key,
  setting text not null
);
INSERT INTO "store_settings" VALUES('digest_key','490b6472977e6f0df748fe43fe400da4e3e4787c02a5bceb127505aba02ad690');
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
COMMIT;
