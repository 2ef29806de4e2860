//! The index of a store in SQLite: files, and what was learnt and decided about them (runs, patterns, plans, results). The truth about
//! files is their layouts; the index is made anew from them at any time and nothing depends on it.

use std::path::PathBuf;

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::error::{Result, StoreError};
use super::info::store_files;
use super::owner_rights::Owner;
use super::store::Store;

/// Tables that hold JSON payloads.
const TABLES: [&str; 4] = ["runs", "patterns", "plans", "results"];
/// Version of the tables, in SQLite's user_version.
const SCHEMA: i64 = 1;

/// The index of one store.
pub struct Catalogue {
    db: Connection,
    path: PathBuf,
    owner: Owner,
}

fn failed(path: &std::path::Path, e: &rusqlite::Error) -> StoreError {
    StoreError::Damaged(format!("{}: {e}; remove it and run `stripewise store fsck --rebuild`", path.display()))
}

impl Catalogue {
    /// Opens the index, made when missing. Every change is on the disk when the call returns.
    ///
    /// # Errors
    /// `Damaged`, `Newer`.
    pub fn open(store: &Store<'_>) -> Result<Self> {
        let owner = Owner::of(store)?;
        let _rights = owner.rights();
        let path = store.root.join("catalogue.db");
        let open = || -> rusqlite::Result<(Connection, i64)> {
            let db = Connection::open(&path)?;
            db.busy_timeout(std::time::Duration::from_secs(10))?;
            db.pragma_update(None, "synchronous", "FULL")?;
            let version = db.query_row("PRAGMA user_version", [], |r| r.get(0))?;
            Ok((db, version))
        };
        let (db, version) = open().map_err(|e| failed(&path, &e))?;
        if version > SCHEMA {
            return Err(StoreError::Newer(format!(
                "{} has version {version}, this Stripewise reads up to {SCHEMA}; use the newer Stripewise",
                path.display()
            )));
        }
        let mut sql = String::from(
            "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, path TEXT, size INTEGER, generation INTEGER, created INTEGER);",
        );
        for table in TABLES {
            sql.push_str(&format!(
                "CREATE TABLE IF NOT EXISTS {table} (key INTEGER PRIMARY KEY, created INTEGER, file TEXT, payload TEXT NOT NULL);"
            ));
        }
        sql.push_str(&format!("PRAGMA user_version = {SCHEMA}; COMMIT;"));
        db.execute_batch(&sql).map_err(|e| failed(&path, &e))?;
        Ok(Self { db, path, owner })
    }

    fn table(&self, table: &str) -> Result<&'static str> {
        TABLES
            .into_iter()
            .find(|t| *t == table)
            .ok_or_else(|| StoreError::Invalid(format!("{} has no table {table:?}; it has {}", self.path.display(), TABLES.join(", "))))
    }

    /// Adds a JSON object; its key `file`, if any, is indexed. Returns the new key.
    ///
    /// # Errors
    /// `Invalid` for text that is no JSON object, `Damaged`.
    pub fn add(&self, table: &str, payload: &str, now_s: i64) -> Result<i64> {
        let table = self.table(table)?;
        let value: Value = serde_json::from_str(payload).map_err(|e| StoreError::Invalid(format!("catalogue {table}: {e}; give a JSON object")))?;
        if !value.is_object() {
            return Err(StoreError::Invalid(format!("catalogue {table}: the payload is no JSON object; give one")));
        }
        let file = value.get("file").and_then(Value::as_str);
        let _rights = self.owner.rights();
        let sql = format!("INSERT INTO {table} (created, file, payload) VALUES (?1, ?2, ?3)");
        self.db.execute(&sql, params![now_s, file, payload]).map_err(|e| failed(&self.path, &e))?;
        Ok(self.db.last_insert_rowid())
    }

    /// All rows of a table, oldest first; of `files`: the indexed files.
    ///
    /// # Errors
    /// `Invalid` for an unknown table, `Damaged`.
    pub fn list(&self, table: &str) -> Result<Vec<Value>> {
        let _rights = self.owner.rights();
        let rows = |sql: &str, read: fn(&rusqlite::Row<'_>) -> rusqlite::Result<Value>| -> rusqlite::Result<Vec<Value>> {
            self.db.prepare(sql)?.query_map([], read)?.collect()
        };
        let result = if table == "files" {
            rows("SELECT id, path, size, generation, created FROM files ORDER BY path, id", |r| {
                Ok(json!({"id": r.get::<_, String>(0)?, "path": r.get::<_, String>(1)?, "size": r.get::<_, i64>(2)?,
                    "generation": r.get::<_, i64>(3)?, "created": r.get::<_, i64>(4)?}))
            })
        } else {
            let table = self.table(table)?;
            rows(&format!("SELECT key, created, payload FROM {table} ORDER BY key"), |r| {
                let text: String = r.get(2)?;
                let payload = serde_json::from_str(&text).unwrap_or(Value::String(text));
                Ok(json!({"key": r.get::<_, i64>(0)?, "created": r.get::<_, i64>(1)?, "payload": payload}))
            })
        };
        result.map_err(|e| failed(&self.path, &e))
    }

    /// Makes the table of files anew from the layouts; returns how many there are.
    ///
    /// # Errors
    /// `Io`, `Damaged`.
    pub fn rebuild(&mut self, store: &Store<'_>) -> Result<usize> {
        let files = store_files(store)?;
        let _rights = self.owner.rights();
        let fill = |db: &mut Connection| -> rusqlite::Result<()> {
            let all = db.transaction()?;
            all.execute("DELETE FROM files", [])?;
            for f in files.iter().filter(|f| f.error.is_none()) {
                let clamp = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
                let created =
                    super::ids::id_from(&f.id).ok().and_then(|id| store.medium.stat(&store.part(id, "head")).ok().flatten()).map_or(0, |s| s.mtime_s);
                all.execute("INSERT INTO files VALUES (?1, ?2, ?3, ?4, ?5)", params![f.id, f.path, clamp(f.size), clamp(f.generation), created])?;
            }
            all.commit()
        };
        fill(&mut self.db).map_err(|e| failed(&self.path, &e))?;
        Ok(files.len())
    }
}
