import Testing

@testable import Postgres

@Suite struct ScriptTextTests {
    @Test(arguments: [
        ("", []),
        (" ;; -- nothing\n; /* ; */ ", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1;", " SELECT 2 ;"]),
        ("-- one; two\nSELECT 1; -- after", ["-- one; two\nSELECT 1;"]),
        ("SELECT '--;'; SELECT 'it''s;'", ["SELECT '--;';", " SELECT 'it''s;'"]),
        (
            #"SELECT E'it\'s;'; SELECT 'a\'; SELECT type';'"#,
            [#"SELECT E'it\'s;';"#, #" SELECT 'a\';"#, " SELECT type';'"]
        ),
        (#"SELECT ";" AS "a""b;"; SELECT 2"#, [#"SELECT ";" AS "a""b;";"#, " SELECT 2"]),
        ("DO $$ BEGIN; END $$; SELECT 1", ["DO $$ BEGIN; END $$;", " SELECT 1"]),
        ("DO $a$ ; $b$ ; $$ ; $a$; SELECT a$b;", ["DO $a$ ; $b$ ; $$ ; $a$;", " SELECT a$b;"]),
        ("SELECT 1 /* ; \n ' */; SELECT 2", ["SELECT 1 /* ; \n ' */;", " SELECT 2"]),
    ])
    func `a text is cut after each statement, and nowhere else`(_ text: String, _ statements: [String]) {
        #expect(ScriptText.statements(of: text).map(String.init) == statements)
    }
}
