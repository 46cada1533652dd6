//! [`Journal`]: what was decided, on the disk before anybody is answered.
//!
//! A file of its own beside the database. Every change of a batch is appended to it and brought to the disk with one
//! sync; the database gets it afterwards, in a transaction that stays open for many batches. When that is
//! committed, the next *generation* of the journal is written over the last one, from the beginning of the file. The
//! database says which generation it holds as a whole, so whoever opens it after a crash knows whether the journal has
//! more. The layout is in `spec/record-format.md`.
//!
//! What is durable is vouched for twice, so that damage is told from a crash:
//!
//! - A *mark* at the beginning of the file has a number that is always ahead of the database's. It becomes durable before
//!   the commit that it is ahead of. So a journal that is missing, empty or older than the database is recognised.
//! - After each sync an empty frame is written behind the batch, and the next batch over it. A batch that is not whole
//!   and has something whole behind it was damaged; one that a crash has torn has nothing behind it.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hapax_core::codec::{self, Encoded};
use hapax_core::{Record, RecordId, Timestamp};
use rusqlite::ffi;

use crate::config::Sync;
use crate::error::{Failure, Phase};

/// What every frame begins with: what it is, and the version of its layout.
const MAGIC: [u8; 8] = *b"HAPXJRN2";
/// What a mark begins with.
const MARK_MAGIC: [u8; 8] = *b"HAPXMRK2";
/// Magic, number and checksum.
const MARK_LENGTH: usize = 20;
/// There are two marks, in sectors of their own, and the older one is written over: one of them is always whole.
const MARK_ROOM: u64 = 512;
/// Where the frames begin.
const FRAMES_AT: u64 = 2 * MARK_ROOM;
/// Magic, generation, salt, batch, time, part, length and checksum.
const HEADER_LENGTH: usize = 52;
/// From which length on a frame is written, and the batch goes on in another. It bounds what has to be held in memory.
const FRAME_BYTES: usize = 1 << 20;
/// How long a journal gets before what it holds should be committed. It bounds what has to be done again after a crash.
const LENGTH_MAX: u64 = 4 << 20;
/// How much of the file is kept for what comes next.
const LENGTH_KEPT: u64 = 4 * LENGTH_MAX;
/// How the length of an outcome says that there is none.
const NO_OUTCOME: u32 = u32::MAX;

const PUT: u8 = 1;
const REMOVE: u8 = 2;

/// A stretch between two commits.
///
/// Outcomes are in the journal as they came, and stay there until something else is written over them. The salt is known
/// to nobody outside, so that none of them can be made to look like a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) salt: i64,
}

/// The journal of the one process that writes.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    sync: Sync,
    length_max: u64,
    file: Arc<File>,
    generation: Generation,
    /// Whether the mark is ahead of the generation and durable.
    is_ahead: bool,
    /// Where the next batch begins: what lies before it is durable.
    end: u64,
    batch: Batch,
}

/// Changes that are brought to the disk together.
#[derive(Debug)]
struct Batch {
    number: u64,
    now: Timestamp,
    /// The frames of it that were written already: where, and how long.
    written: Vec<(u64, usize)>,
    /// The one that is being filled, with room for its header.
    frame: Vec<u8>,
}

/// What became of a record.
#[derive(Debug)]
pub(crate) enum Entry {
    Put(Box<Record>),
    Remove(RecordId),
}

/// Changes that were decided at one time.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) now: Timestamp,
    pub(crate) entries: Vec<Entry>,
}

/// Why a journal cannot be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    /// It is not what was written, and what is missing was acknowledged.
    Damaged(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Batch {
    fn numbered(number: u64) -> Self {
        Self { number, now: Timestamp::from_millis(0), written: Vec::new(), frame: vec![0; HEADER_LENGTH] }
    }

    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.frame.len() == HEADER_LENGTH
    }
}

impl Journal {
    /// The journal in `file`, which is at `path`; its next frames are of `generation`.
    pub(crate) fn new(path: PathBuf, file: File, sync: Sync, generation: Generation) -> Self {
        let (file, length_max, batch) = (Arc::new(file), LENGTH_MAX, Batch::numbered(0));
        Self { path, sync, length_max, file, generation, is_ahead: false, end: FRAMES_AT, batch }
    }

    /// Makes sure that the file has a mark that the database is not ahead of, where an earlier process left none.
    pub(crate) fn mark_beginning(&self) -> io::Result<()> {
        if newest_mark(&mut &*self.file)?.is_none_or(|found| found < self.generation.number) {
            self.write_mark(self.generation.number)?;
        }
        self.file.sync_all()
    }

    /// Makes sure that the mark is ahead of the generation, which may be committed then.
    pub(crate) fn mark_ahead(&mut self) -> Result<(), Failure> {
        if !self.is_ahead {
            self.write_mark(self.generation.number + 1).map_err(write_failure)?;
            self.sync_file()?;
            self.is_ahead = true;
        }
        Ok(())
    }

    fn write_mark(&self, number: u64) -> io::Result<()> {
        write_at(&self.file, (number % 2) * MARK_ROOM, &mark(number))
    }

    fn sync_file(&self) -> Result<(), Failure> {
        match self.sync {
            Sync::Full => self.file.sync_data().map_err(sync_failure),
            Sync::Off => Ok(()),
        }
    }

    /// Should be committed when it is as long as this.
    pub(crate) fn commit_after(&mut self, bytes: u64) {
        self.length_max = bytes;
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Bytes that are durable here and not known to be so in the database.
    pub(crate) fn length(&self) -> u64 {
        self.end - FRAMES_AT
    }

    /// Whether what it holds should be committed.
    pub(crate) fn is_long(&self) -> bool {
        self.length() >= self.length_max
    }

    /// Bytes of the batch that is being noted.
    pub(crate) fn batch_length(&self) -> u64 {
        self.next_frame() - self.end + self.batch.frame.len() as u64
    }

    /// All that it holds is in the database for good: what comes next is of `generation` and written over it.
    pub(crate) fn start_over(&mut self, generation: Generation) {
        if self.end > LENGTH_KEPT {
            // What it failed to give back, it will write over.
            let _ = self.file.set_len(LENGTH_KEPT);
        }
        self.generation = generation;
        self.is_ahead = false;
        self.end = FRAMES_AT;
        self.batch = Batch::numbered(0);
    }

    /// Begins a batch whose changes are decided at `now`.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.batch.now = now;
    }

    pub(crate) fn put(&mut self, id: &RecordId, encoded: &Encoded) -> Result<(), Failure> {
        let outcome = encoded.outcome.as_deref();
        let frame = &mut self.batch.frame;
        frame.push(PUT);
        frame.extend_from_slice(id.as_bytes());
        frame.extend_from_slice(&length_of(&encoded.head).to_le_bytes());
        frame.extend_from_slice(&outcome.map_or(NO_OUTCOME, length_of).to_le_bytes());
        frame.extend_from_slice(&encoded.head);
        frame.extend_from_slice(outcome.unwrap_or_default());
        self.write_if_long()
    }

    pub(crate) fn remove(&mut self, id: &RecordId) -> Result<(), Failure> {
        self.batch.frame.push(REMOVE);
        self.batch.frame.extend_from_slice(id.as_bytes());
        self.write_if_long()
    }

    /// Brings the changes of the batch to the disk before this returns.
    pub(crate) fn bring(&mut self) -> Result<(), Failure> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.write_frame()?;
        if !self.is_ahead {
            self.write_mark(self.generation.number + 1).map_err(write_failure)?;
        }
        self.sync_file()?;
        self.is_ahead = true;
        self.end = self.next_frame();
        self.batch.number += 1;
        self.batch.written.clear();
        self.vouch();
        Ok(())
    }

    /// Writes behind the last batch that it is durable. That needs no sync: what a killed process has written stays, and
    /// after a power loss it may be missing. Where it cannot be written, the batch is as durable.
    fn vouch(&self) {
        let header = self.header(0, &[]);
        let _ = write_at(&self.file, self.end, &header.sealed(&[]));
    }

    fn header(&self, part: usize, payload: &[u8]) -> Header {
        Header {
            generation: self.generation,
            batch: self.batch.number,
            now_ms: self.batch.now.as_millis(),
            part: u32::try_from(part).expect("a batch has few frames"),
            length: length_of(payload),
            checksum: 0,
        }
    }

    /// Takes back the changes of a batch that was not brought to the disk, also those that were written.
    pub(crate) fn forget(&mut self) -> Result<(), Failure> {
        let same = Batch::numbered(self.batch.number);
        let batch = std::mem::replace(&mut self.batch, same);
        if batch.written.is_empty() {
            return Ok(());
        }
        // Where this fails, nobody can say what a crash would bring back.
        let erase = |(at, _): &(u64, usize)| write_at(&self.file, *at, &[0; HEADER_LENGTH]);
        let erased = batch.written.iter().try_for_each(erase);
        erased.and_then(|()| self.file.sync_data()).map_err(sync_failure)?;
        if self.length() > 0 {
            self.vouch();
        }
        Ok(())
    }

    /// Removes the file, when all that it holds is in the database for good.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.file);
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What was brought to the disk in this generation.
    pub(crate) fn frames(&self) -> io::Result<Frames> {
        Frames::of(Arc::clone(&self.file), self.generation, Some(self.end))
    }

    /// What an earlier process may have left of this generation.
    pub(crate) fn all_frames(&self) -> io::Result<Frames> {
        Frames::of(Arc::clone(&self.file), self.generation, None)
    }

    fn write_if_long(&mut self) -> Result<(), Failure> {
        if self.batch.frame.len() < FRAME_BYTES { Ok(()) } else { self.write_frame() }
    }

    fn write_frame(&mut self) -> Result<(), Failure> {
        let mut frame = std::mem::take(&mut self.batch.frame);
        let (header, payload) = frame.split_first_chunk_mut().expect("a frame has a header");
        *header = self.header(self.batch.written.len(), payload).sealed(payload);
        let at = self.next_frame();
        write_at(&self.file, at, &frame).map_err(write_failure)?;
        self.batch.written.push((at, frame.len()));
        frame.truncate(HEADER_LENGTH);
        frame.shrink_to(FRAME_BYTES);
        self.batch.frame = frame;
        Ok(())
    }

    /// Where the next frame of the batch goes.
    fn next_frame(&self) -> u64 {
        self.batch.written.last().map_or(self.end, |(at, length)| at + *length as u64)
    }
}

fn write_at(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The parts of a frame are far below 4 GiB: an outcome has a limit, and a frame is written when it is long.
fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("an outcome has a limit")
}

fn write_failure(error: io::Error) -> Failure {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let code = match error.kind() {
        StorageFull | QuotaExceeded => ffi::SQLITE_FULL,
        _ => ffi::SQLITE_IOERR_WRITE,
    };
    failure(code, &error)
}

fn sync_failure(error: io::Error) -> Failure {
    failure(ffi::SQLITE_IOERR_FSYNC, &error)
}

fn failure(code: i32, error: &io::Error) -> Failure {
    let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(error.to_string()));
    Failure::at(Phase::Journal)(error)
}

/// The fixed part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    generation: Generation,
    batch: u64,
    now_ms: u64,
    part: u32,
    length: u32,
    checksum: u32,
}

impl Header {
    /// As bytes, with the checksum that fits `payload`.
    fn sealed(self, payload: &[u8]) -> [u8; HEADER_LENGTH] {
        Self { checksum: self.checksum_with(payload), ..self }.to_bytes()
    }

    fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        let Generation { number, salt } = self.generation;
        let longs = [u64::from_le_bytes(MAGIC), number, salt.cast_unsigned(), self.batch, self.now_ms];
        let shorts = [self.part, self.length, self.checksum];
        let parts = longs.iter().map(|long| long.to_le_bytes());
        bytes.chunks_exact_mut(8).zip(parts).for_each(|(to, from)| to.copy_from_slice(&from));
        let parts = shorts.iter().map(|short| short.to_le_bytes());
        bytes[40..].chunks_exact_mut(4).zip(parts).for_each(|(to, from)| to.copy_from_slice(&from));
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER_LENGTH]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        bytes.starts_with(&MAGIC).then(|| Self {
            generation: Generation { number: long(8), salt: long(16).cast_signed() },
            batch: long(24),
            now_ms: long(32),
            part: short(40),
            length: short(44),
            checksum: short(48),
        })
    }

    fn checksum_with(self, payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&Self { checksum: 0, ..self }.to_bytes());
        hasher.update(payload);
        hasher.finalize()
    }
}

/// Reads the frames of one generation, from the beginning of the file to the first that is not whole.
#[derive(Debug)]
pub(crate) struct Frames {
    file: BufReader<Arc<File>>,
    generation: Generation,
    /// Up to where to look, and where to look next.
    end: u64,
    at: u64,
    /// The last batch and part that were whole.
    last: Option<(u64, u32)>,
}

impl Frames {
    /// What the journal in `file` holds of `generation`: all of it, or what lies before `end`.
    pub(crate) fn of(file: Arc<File>, generation: Generation, end: Option<u64>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let end = end.unwrap_or(length).min(length);
        Ok(Self { file: BufReader::new(file), generation, end, at: FRAMES_AT, last: None })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Frame>, ReadError> {
        let Some((header, payload)) = self.whole_frame()? else {
            return Ok(None);
        };
        self.at += (HEADER_LENGTH + payload.len()) as u64;
        self.last = Some((header.batch, header.part));
        let mut rest = &payload[..];
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let at = self.at;
            let entry = Entry::take(&mut rest).map_err(|why| {
                ReadError::Damaged(format!("an entry of the journal before byte {at}: {why}"))
            })?;
            entries.push(entry);
        }
        Ok(Some(Frame { now: Timestamp::from_millis(header.now_ms), entries }))
    }

    /// How much was read.
    pub(crate) fn read_length(&self) -> u64 {
        self.at - FRAMES_AT
    }

    /// The frame at the place where the next one should be.
    fn whole_frame(&mut self) -> io::Result<Option<(Header, Vec<u8>)>> {
        let frame = self.frame_at(self.at)?;
        Ok(frame.filter(|(header, _)| match self.last {
            None => (header.batch, header.part) == (0, 0),
            Some((batch, part)) => {
                (header.batch, header.part) == (batch, part + 1)
                    || (header.batch, header.part) == (batch + 1, 0)
            }
        }))
    }

    fn frame_at(&mut self, at: u64) -> io::Result<Option<(Header, Vec<u8>)>> {
        let frame = frame_at(&mut self.file, at, self.end)?;
        Ok(frame.filter(|(header, _)| header.generation == self.generation))
    }

    /// Makes sure that nothing is missing that was acknowledged, when the last frame was read.
    ///
    /// A batch is written after the one before is durable. So whatever is whole further on, and of a later batch than
    /// the one that was torn, shows that this one was whole too. A batch without any after it may have been
    /// torn by the crash, also between two of its parts.
    pub(crate) fn check_end(&mut self) -> Result<(), ReadError> {
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.read_to_end(&mut rest)?;
        let next = self.last.map_or(0, |(batch, _)| batch + 1);
        let Generation { number, salt } = self.generation;
        let beginning = [MAGIC, number.to_le_bytes(), salt.to_le_bytes()].concat();
        for (skipped, window) in rest.windows(beginning.len()).enumerate() {
            if window != beginning {
                continue;
            }
            let found = self.frame_at(self.at + skipped as u64)?;
            if found
                .is_some_and(|(header, _)| header.batch > next || (header.batch == next && header.part == 0))
            {
                let at = self.at;
                return Err(ReadError::Damaged(format!("the journal cannot be read from byte {at} on")));
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Takes the first entry off `bytes`; otherwise what is wrong with it, never any content.
    fn take(bytes: &mut &[u8]) -> Result<Self, String> {
        let kind = take(bytes, 1)?[0];
        let id: [u8; 32] = take(bytes, 32)?.try_into().expect("as long as was asked for");
        let id = RecordId::from_bytes(id);
        match kind {
            PUT => {
                let head_length = take_length(bytes)?;
                let outcome_length = take_length(bytes)?;
                let head = take(bytes, head_length as usize)?;
                let outcome = match outcome_length {
                    NO_OUTCOME => None,
                    length => Some(take(bytes, length as usize)?),
                };
                let record =
                    codec::decode(&id, head, outcome).map_err(|unreadable| unreadable.to_string())?;
                Ok(Self::Put(Box::new(record)))
            }
            REMOVE => Ok(Self::Remove(id)),
            other => Err(format!("there is no entry of kind {other}")),
        }
    }
}

fn take_length(bytes: &mut &[u8]) -> Result<u32, String> {
    take(bytes, 4).map(|length| u32::from_le_bytes(length.try_into().expect("as long as was asked for")))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or("it is cut short")?;
    *bytes = rest;
    Ok(taken)
}

/// The frame at byte `at`, if there is one that is whole before `end`.
fn frame_at(
    file: &mut (impl io::Read + io::Seek),
    at: u64,
    end: u64,
) -> io::Result<Option<(Header, Vec<u8>)>> {
    let payload_at = at + HEADER_LENGTH as u64;
    if payload_at > end {
        return Ok(None);
    }
    let mut header = [0; HEADER_LENGTH];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut header)?;
    let Some(header) = Header::from_bytes(&header) else {
        return Ok(None);
    };
    if payload_at + u64::from(header.length) > end {
        return Ok(None);
    }
    let mut payload = vec![0; header.length as usize];
    file.read_exact(&mut payload)?;
    Ok((header.checksum == header.checksum_with(&payload)).then_some((header, payload)))
}

/// Of which generation the frames of the journal at `path` are; none where there is no whole one at its beginning.
pub(crate) fn generation_at(path: &Path) -> io::Result<Option<u64>> {
    let Some(mut file) = open_existing(path)? else {
        return Ok(None);
    };
    let length = file.metadata()?.len();
    match frame_at(&mut file, FRAMES_AT, length) {
        // It was given back in between.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        frame => Ok(frame?.map(|(header, _)| header.generation.number)),
    }
}

/// The newest mark of the journal at `path`; none where there is no journal, or none that has one.
pub(crate) fn newest_mark_at(path: &Path) -> io::Result<Option<u64>> {
    open_existing(path)?.map_or(Ok(None), |mut file| newest_mark(&mut file))
}

fn open_existing(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn newest_mark(file: &mut (impl io::Read + io::Seek)) -> io::Result<Option<u64>> {
    let mut newest = None;
    for at in [0, MARK_ROOM] {
        let mut bytes = Vec::with_capacity(MARK_LENGTH);
        file.seek(SeekFrom::Start(at))?;
        io::Read::take(&mut *file, MARK_LENGTH as u64).read_to_end(&mut bytes)?;
        let number = bytes.get(8..16).map(|number| u64::from_le_bytes(std::array::from_fn(|n| number[n])));
        newest = newest.max(number.filter(|number| bytes == mark(*number)));
    }
    Ok(newest)
}

fn mark(number: u64) -> [u8; MARK_LENGTH] {
    let mut bytes = [0; MARK_LENGTH];
    bytes[..8].copy_from_slice(&MARK_MAGIC);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
