//! Tests of the cache and of a local server. If `AUTOEXPERIMENT_EMBEDDING` names a static model, it is tested too.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// An embedder for tests: a text's vector is made from its length in bytes. Counts the texts that it embeds.
#[derive(Default)]
struct CountingEmbedder(AtomicUsize);

#[async_trait]
impl Embedder for CountingEmbedder {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        Ok(texts.iter().map(|text| normalised(vec![text.len() as f32, 1.0])).collect())
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn a_text_is_embedded_once_across_processes_and_only_torn_entries_are_embedded_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = Arc::new(CountingEmbedder::default());
    let cached = cached::CachedEmbedder::open(first.clone(), Some(folder.path())).unwrap();
    let once = cached.embed(&texts(&["a", "bb", "a"])).await.unwrap();
    assert_eq!(once[0], once[2]);
    assert_ne!(once[0], once[1]);
    assert_eq!(first.0.load(Ordering::Relaxed), 2);

    let file = std::fs::read_dir(folder.path().join("embeddings")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    let second = Arc::new(CountingEmbedder::default());
    let cached = cached::CachedEmbedder::open(second.clone(), Some(folder.path())).unwrap();
    assert_eq!(cached.embed(&texts(&["a", "bb"])).await.unwrap(), once[..2]);
    assert_eq!(second.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_record_after_another_processs_torn_record_does_not_complete_its_vector() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let inner = Arc::new(CountingEmbedder::default());
        (cached::CachedEmbedder::open(inner.clone(), Some(folder.path())).unwrap(), inner)
    };
    let (one, _) = open();
    let (other, _) = open();
    let vectors = one.embed(&texts(&["a", "bb"])).await.unwrap();
    // The process that wrote the last record was killed in the middle of the write.
    let file = std::fs::read_dir(folder.path().join("embeddings")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    // Opening the file does not cut the record off: it may belong to a write in progress.
    let (_, _) = open();
    assert_eq!(std::fs::read(&file).unwrap().len(), whole.len() - 3);
    other.embed(&texts(&["cccc"])).await.unwrap();
    let (later, inner) = open();
    assert_eq!(later.embed(&texts(&["a", "bb"])).await.unwrap(), vectors);
    assert_eq!(inner.0.load(Ordering::Relaxed), 1, "one of the two records was torn");
    assert_eq!(later.embed(&texts(&["cccc"])).await.unwrap().len(), 1);
    assert_eq!(inner.0.load(Ordering::Relaxed), 1, "the record after it is read");
}

#[tokio::test]
async fn endpoints_are_called_with_openais_protocol_and_vectors_are_reordered_by_index() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut part = [0; 4096];
        while !String::from_utf8_lossy(&request).contains("\"bb\"") {
            let count = stream.read(&mut part).unwrap();
            request.extend_from_slice(&part[..count]);
        }
        let body = r#"{"object":"list","model":"m","data":[{"object":"embedding","index":1,"embedding":[0.0,2.0]},{"object":"embedding","index":0,"embedding":[3.0,4.0]}],"usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8_lossy(&request).into_owned()
    });
    let remote = remote::Remote::open("m", Some(&url), &|_| None).unwrap();
    assert_eq!(remote.embed(&texts(&["a", "bb"])).await.unwrap(), [vec![0.6, 0.8], vec![0.0, 1.0]]);
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /v1/embeddings"), "{request}");
}

#[test]
fn a_missing_key_or_model_gives_an_error_with_a_remedy() {
    let error = remote::Remote::open("openai:text-embedding-3-small", None, &|_| None).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("OPENAI_API_KEY") && error.hint.is_some());
    let with_key = "http://user:secretpw@host/v1";
    let error = remote::Remote::open("m", Some(with_key), &|_| None).map(|_| ()).unwrap_err();
    assert!(!error.to_string().contains("secretpw") && error.hint.is_some(), "{error}");
    assert!(open("/no/such/folder", None, None).map(|_| ()).unwrap_err().hint.is_some());
}

#[tokio::test]
#[ignore = "needs a static model, whose folder AUTOEXPERIMENT_EMBEDDING names"]
async fn a_static_model_gives_similar_texts_similar_vectors() {
    let folder = std::env::var("AUTOEXPERIMENT_EMBEDDING").unwrap();
    let model = open(&folder, None, None).unwrap();
    let said = texts(&["the variance of the samples", "standard deviation", "open a network socket"]);
    let vectors = model.embed(&said).await.unwrap();
    assert!(similarity(&vectors[0], &vectors[1]) > similarity(&vectors[0], &vectors[2]));
}

/// Measured on one core (`taskset`): embedding 10,000 texts the size of functions takes at most a minute.
#[tokio::test]
#[ignore = "needs a static model, whose folder AUTOEXPERIMENT_EMBEDDING names"]
async fn ten_thousand_snippets_are_embedded_within_a_minute() {
    let folder = std::env::var("AUTOEXPERIMENT_EMBEDDING").unwrap();
    let code = include_str!("../../code/splice/mod.rs");
    let functions: Vec<&str> = code.split("\n}\n").collect();
    let many: Vec<String> =
        (0..10_000).map(|number| format!("# {number}\n{}", functions[number % functions.len()])).collect();
    let characters = many.iter().map(String::len).sum::<usize>() / many.len();
    let cache = tempfile::tempdir().unwrap();
    let model = open(&folder, None, Some(cache.path())).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(model.embed(&many).await.unwrap().len(), many.len());
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} texts of {characters} characters on average in {seconds:.1} s", many.len());
    assert!(seconds < 60.0, "{seconds} s");
    let begun = std::time::Instant::now();
    open(&folder, None, Some(cache.path())).unwrap().embed(&many).await.unwrap();
    println!("again, from the cache: {:.2} s", begun.elapsed().as_secs_f64());
}
